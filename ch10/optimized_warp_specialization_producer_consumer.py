"""Optimized: warps with roles: loading, converting, multiplying overlap."""
# predicts: optimized = 0.77 x baseline  (1024 of 1444 cycles per K-step, 0.71, less a clock that falls as tensor cores never rest, a guess)
# proves: /\bUSETMAXREG\b/
# has: spills == 0
# has: tma_load_tile

import torch
import triton
import triton.language as tl


@triton.jit
def dequantized_matmul(w, scale, x, y, n, m, k, ROWS: tl.constexpr, COLS: tl.constexpr, STEP: tl.constexpr):
    row = tl.program_id(0) * ROWS
    col = tl.program_id(1) * COLS
    weights = tl.make_tensor_descriptor(w, [n, k], [k, 1], [ROWS, STEP])
    tokens = tl.make_tensor_descriptor(x, [m, k], [k, 1], [COLS, STEP])
    outputs = tl.make_tensor_descriptor(y, [n, m], [m, 1], [ROWS, COLS])
    sums = tl.zeros((ROWS, COLS), tl.float32)
    for at in tl.range(0, k, STEP, warp_specialize=True):
        sums = tl.dot(weights.load([row, at]).to(tl.float16), tokens.load([col, at]).T, sums)
    lane = tl.arange(0, ROWS)
    factor = tl.load(scale + row + lane, mask=lane < n - row, other=0.0)  # `row + lane < n` is 64 rows off in the second half (Triton 3.6)
    outputs.store([row, col], (sums * factor[:, None]).to(tl.float16))


def prepare(w, scale, x, n, m, k):
    y = torch.empty(n, m, dtype=x.dtype, device=x.device)
    grid = (triton.cdiv(n, 128), triton.cdiv(m, 256))
    triton.set_allocator(lambda size, _alignment, _stream: torch.empty(size, dtype=torch.int8, device=x.device))  # for descriptors
    # On Hopper Triton turns 4 warps into 12: 4 load, and two groups of 4 convert and multiply 64 rows each. It does not split 8 warps.
    # On Blackwell it adds 4 warps to 8 that convert: one of the 4 loads, one multiplies what the 8 wrote to tensor memory.
    warps = 4 if x.is_cuda and torch.cuda.get_device_capability(x.device)[0] == 9 else 8

    def step():
        dequantized_matmul[grid](w, scale, x, y, n, m, k, ROWS=128, COLS=256, STEP=64, num_warps=warps, num_stages=4)
        return y

    return step

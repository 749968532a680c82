"""Optimized: tiles by TMA, multiplied by the tensor cores; a program takes one tile after the other."""
# has: tma_load_tile
# has: launches == 1
# has: grid <= 148
# has: shared_memory >= 64 KiB
# has: /^(HGMMA|UTCHMMA)\b/
# has: tcgen05_mma_f16_tf32
# has: spills == 0
# proves: kernel product_of_tiles

import torch
import triton
import triton.language as tl


@triton.jit
def product_of_tiles(a, b, c, n, EACH: tl.constexpr, DEEP: tl.constexpr, PROGRAMS: tl.constexpr):
    left = tl.make_tensor_descriptor(a, [n, n], [n, 1], [EACH, DEEP])
    right = tl.make_tensor_descriptor(b, [n, n], [n, 1], [DEEP, EACH])
    out = tl.make_tensor_descriptor(c, [n, n], [n, 1], [EACH, EACH])
    across = tl.cdiv(n, EACH)
    for tile in tl.range(tl.program_id(0), across * across, PROGRAMS):
        row, column = tile // across * EACH, tile % across * EACH
        total = tl.zeros((EACH, EACH), tl.float32)
        for k in range(0, n, DEEP):
            total = tl.dot(left.load([row, k]), right.load([k, column]), total)
        out.store([row, column], total.to(tl.float16))


def prepare(a, b, n):
    c = torch.empty_like(a)
    programs = torch.cuda.get_device_properties(a.device).multi_processor_count if a.is_cuda else 1
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device=a.device))

    def step():
        product_of_tiles[(programs,)](a, b, c, n, EACH=128, DEEP=64, PROGRAMS=programs, num_warps=8)
        return c

    return step

import torch
import triton
import triton.language as tl
from shared_triton_matmul import Tile, tile_of

@triton.jit
def persistent_matmul(a, b, c, m, n, k, ROWS: tl.constexpr, COLS: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr, SPECIALIZE: tl.constexpr, FLATTEN: tl.constexpr, SUB: tl.constexpr):
    tile_rows, tile_cols = tl.cdiv(m, ROWS), tl.cdiv(n, COLS)
    from_a = tl.make_tensor_descriptor(a, [m, k], [k, 1], [ROWS, DEPTH])
    from_b = tl.make_tensor_descriptor(b, [n, k], [k, 1], [COLS, DEPTH])
    to = tl.make_tensor_descriptor(c, [m, n], [n, 1], [ROWS, COLS // SUB])
    for index in tl.range(tl.program_id(0), tile_rows * tile_cols, tl.num_programs(0), flatten=FLATTEN, warp_specialize=SPECIALIZE):
        row, col = tile_of(index, tile_rows, tile_cols, GROUP)
        sums = tl.zeros((ROWS, COLS), tl.float32)
        for at in tl.range(0, k, DEPTH):
            sums = tl.dot(from_a.load([row * ROWS, at]), from_b.load([col * COLS, at]).T, sums)
        if SUB == 1:
            to.store([row * ROWS, col * COLS], sums.to(tl.bfloat16))
        else:
            left, right = sums.reshape((ROWS, 2, COLS // 2)).permute(0, 2, 1).split()
            to.store([row * ROWS, col * COLS], left.to(tl.bfloat16))
            to.store([row * ROWS, col * COLS + COLS // 2], right.to(tl.bfloat16))

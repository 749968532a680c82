"""A script: the PTX that Triton makes of a bf16 matmul with tensor descriptors, to stdout, for the capability and tile width named."""

import sys

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def matmul(a, b, c, m, n, k, tile_n: tl.constexpr):
    a_tiles = tl.make_tensor_descriptor(a, [m, k], [k, 1], [128, 64])
    b_tiles = tl.make_tensor_descriptor(b, [n, k], [k, 1], [tile_n, 64])
    c_tiles = tl.make_tensor_descriptor(c, [m, n], [n, 1], [128, tile_n])
    row, column = tl.program_id(0) * 128, tl.program_id(1) * tile_n
    total = tl.zeros((128, tile_n), tl.float32)
    for first in range(0, k, 64):
        total = tl.dot(a_tiles.load([row, first]), b_tiles.load([column, first]).T, total)
    c_tiles.store([row, column], total.to(tl.bfloat16))


capability, tile_n = int(sys.argv[1]), int(sys.argv[2])
source = ASTSource(
    fn=matmul,
    signature={**dict.fromkeys("abc", "*bf16"), **dict.fromkeys("mnk", "i32"), "tile_n": "constexpr"},
    constexprs={"tile_n": tile_n},
    attrs={(argument,): [["tt.divisibility", 16]] for argument in range(6)},
)
print(triton.compile(source, target=GPUTarget("cuda", capability, 32), options={"num_warps": 4, "num_stages": 3}).asm["ptx"])

"""Three Triton kernels, from a masked copy to a tiled product, each checked against PyTorch.

./setup.sh python ch14/triton_examples.py

Without a GPU they run in Triton's interpreter, which is NumPy: right, and thousands of times slower.
"""

import os

import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when a kernel is declared

import triton
import triton.language as tl

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    """A program a block of BLOCK values; the mask keeps the last one inside."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


@triton.jit
def norm(x, out, cols, BLOCK: tl.constexpr):
    """A program a row, which stays in registers between the reduction and the division."""
    at = tl.arange(0, BLOCK)
    row = tl.load(x + tl.program_id(0) * cols + at, mask=at < cols, other=0.0)
    tl.store(out + tl.program_id(0) * cols + at, row / tl.sqrt(tl.sum(row * row) / cols + 1e-6), mask=at < cols)


@triton.jit
def product(a, b, out, n, k, TILE: tl.constexpr, DEPTH: tl.constexpr):
    """A program a TILE x TILE part of out = a b, whose sizes are multiples of TILE and DEPTH."""
    rows = tl.program_id(0) * TILE + tl.arange(0, TILE)[:, None]
    cols = tl.program_id(1) * TILE + tl.arange(0, TILE)[None, :]
    total = tl.zeros((TILE, TILE), dtype=tl.float32)
    for start in range(0, k, DEPTH):
        at = start + tl.arange(0, DEPTH)
        left = tl.load(a + rows * k + at[None, :])
        total += tl.dot(left, tl.load(b + at[:, None] * n + cols), input_precision="ieee")
    tl.store(out + rows * n + cols, total)


def main():
    """Run each kernel and compare. Raises AssertionError for a wrong answer."""
    x, y = (torch.randn(96, 64, device=DEVICE) for _ in range(2))
    sums, scaled, square = torch.empty_like(x), torch.empty_like(x), torch.empty(96, 96, device=DEVICE)
    add[(triton.cdiv(x.numel(), 1024),)](x, y, sums, x.numel(), BLOCK=1024)
    norm[(len(x),)](x, scaled, x.shape[1], BLOCK=64)
    product[(3, 3)](x, y.T.contiguous(), square, 96, 64, TILE=32, DEPTH=16)
    for name, found, right in (("add", sums, x + y), ("norm", scaled, torch.rms_norm(x, (64,), eps=1e-6)), ("product", square, x @ y.T)):
        torch.testing.assert_close(found, right, rtol=1e-4, atol=1e-4, msg=lambda text, name=name: f"{name}: {text}")
        print(f"{name}: right")


if __name__ == "__main__":
    main()

"""A cache in NVFP4: every word comes apart into its codes times its scales, and PyTorch and Triton pack alike."""

import os
import subprocess
import sys

import pytest

from tests.support.commands import ROOT, ROOT_FIRST

UNPACKED = """
import sys
import torch, triton, triton.language as tl
from common.block_formats import e2m1_values
from common.python.child.sides.triton import mend_interpreter
from shared_nvfp4 import OTHERS, SIGNS, quantized, scaled_quarters, store_nvfp4

DIM, DEVICE = 128, sys.argv[1]
if DEVICE == "cpu":
    mend_interpreter()

@triton.jit
def unpack(cache, scales, y, DIM: tl.constexpr):
    row, lane = tl.program_id(0) * 32 + tl.arange(0, 32), tl.arange(0, DIM // 4)
    first, second, third, fourth = scaled_quarters(cache, scales, row, row >= 0, DIM)
    at = y + row[:, None] * DIM + lane[None, :]
    tl.store(at, first)
    tl.store(at + DIM // 4, second)
    tl.store(at + DIM // 2, third)
    tl.store(at + DIM // 4 * 3, fourth)

@triton.jit
def pack(x, cache, scales, whole, DIM: tl.constexpr):
    row = tl.program_id(0)
    store_nvfp4(x + row * DIM, cache + row * (DIM // 4), scales + row * (DIM // 16), tl.load(whole), DIM)

def unpacked(words, scales):
    y = torch.empty(len(words), DIM, dtype=torch.float16, device=DEVICE)
    unpack[len(words) // 32,](words.to(DEVICE), scales.to(DEVICE), y, DIM=DIM)
    return y.double().cpu() * 2.0**14

# Every word of four codes, with every scale: 126 rows of scales, positive and finite, for each 32 words.
codes = torch.arange(2**16).view(-1, 1) >> torch.tensor([0, 4, 8, 12]) & 15
words = sum((codes[:, j] >> 3 << SIGNS[j]) | (codes[:, j] & 7) << OTHERS[j] for j in range(4)).to(torch.int16).view(-1, 32)
for shift in range(4):
    bytes_ = (torch.arange(len(words) * 8).view(-1, 8) * 37 + shift * 31) % 126 + 1
    scales = bytes_.to(torch.uint8).view(torch.float8_e4m3fn)
    of = scales.double().view(-1, 2, 4).transpose(1, 2).reshape(-1, 8).repeat_interleave(16, 1)
    right = e2m1_values(codes.view(-1, 32, 4).transpose(1, 2).reshape(-1, DIM)).double() * of
    assert torch.equal(unpacked(words, scales), right)

x = torch.randn(64, DIM, generator=torch.Generator().manual_seed(0)).bfloat16().to(DEVICE)
right = quantized(x)
found = torch.empty_like(right[0]), torch.empty_like(right[1])
pack[64,](x, *found, right[2], DIM=DIM)
others = sum(int((a.view(torch.uint8) != b.view(torch.uint8)).sum()) for a, b in zip(found, right[:2]))
assert others <= (0 if DEVICE == "cpu" else 8), others  # a GPU's division may be off by its last bit
back = unpacked(*right[:2]) * right[2].double().cpu()
off = (back - x.double().cpu()).unflatten(1, (-1, 16)).abs()
assert bool((off <= x.double().cpu().unflatten(1, (-1, 16)).abs().amax(-1, keepdim=True) / 6 * 1.08).all())  # half of the widest gap
"""


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_words_come_apart_into_what_was_packed(device, tmp_path):
    script = tmp_path / "unpacked.py"  # a file, as Triton reads the source of what it compiles
    script.write_text(UNPACKED)
    path = os.pathsep.join([str(ROOT / "labs/kv_cache_compression"), ROOT_FIRST])
    here = {**os.environ, "TRITON_INTERPRET": str(int(device == "cpu")), "PYTHONPATH": path}
    done = subprocess.run([sys.executable, script, device], env=here, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

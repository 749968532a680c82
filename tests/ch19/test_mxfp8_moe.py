"""ch19:mxfp8_moe: integers round to e4m3 as PyTorch's cast does, blocks as the codec does, and Blackwell multiplies e4m3 with scales.

Products of 4 bits with scales are compiled too, of a kernel that no pair has.
"""

import os
import re
import subprocess
import sys

import pytest

from tests.support.teeth import ROOT

# Values of all sizes that e4m3 tells apart, ties between neighbours, some beyond; then rows of very different sizes, one of zeros.
ROUNDED_ALIKE = """
import torch
from common.block_formats import mxfp8, mxfp8_restored
from shared_e4m3_rounding import rounded

every = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).float()
finite = every[every.isfinite()].sort().values
x = torch.cat((finite, (finite[1:] + finite[:-1]) / 2, torch.randn(3461, generator=torch.Generator().manual_seed(3)) * 100)).bfloat16()
x = torch.cat((x.clamp(-448, 448).view(-1, 31), torch.full((len(x) // 31, 1), 448.0)), 1).bfloat16().flatten()  # a scale of 1
assert x.numel() == 4096, x.shape
for up in (False, True):
    assert torch.equal(rounded(x, up).float(), x.float().to(torch.float8_e4m3fn).float())
x = (x.view(64, 64).float() * torch.logspace(-12, 12, 64)[:, None]).bfloat16()
x[3] = 0
for up in (False, True):
    assert torch.equal(rounded(x, up).float(), mxfp8_restored(*mxfp8(x, up)))
x = torch.randn(64, 64, generator=torch.Generator().manual_seed(4)).bfloat16()
assert (rounded(x, True) - x).norm() < 0.95 * (rounded(x, False) - x).norm()
"""

COMPILED = """
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile
from optimized_mxfp8_moe_blackwell import COLS, DEPTH, ROWS, mxfp8_grouped

pointers = {"x": "*fp8e4nv", "x_scales": "*u8", "w": "*fp8e4nv", "w_scales": "*u8", "ends": "*i32", "y": "*bf16"}
signature = pointers | {"cols": "i32", "k": "i32", "blocks": "i32"} | dict.fromkeys(("ROWS", "COLS", "DEPTH"), "constexpr")
source = ASTSource(mxfp8_grouped, signature, constexprs={"ROWS": ROWS, "COLS": COLS, "DEPTH": DEPTH})
print(compile(source, target=GPUTarget("cuda", 100, 32), options={"num_warps": 8}).asm["ptx"])
"""

FOUR_BITS = """
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, compile
from tests.ch19.triton_fp4_product import fp4_product

pointers = {"x": "*u8", "x_scales": SCALES, "w": "*u8", "w_scales": SCALES, "y": "*bf16"}
signature = pointers | {"cols": "i32", "k": "i32"} | dict.fromkeys(("SIDE", "DEPTH", "BLOCK"), "constexpr")
source = ASTSource(fp4_product, signature, constexprs={"SIDE": 128, "DEPTH": 128, "BLOCK": BLOCK})
print(compile(source, target=GPUTarget("cuda", 100, 32), options={"num_warps": 8}).asm["ptx"])
"""


def ran(program, folder, **more):
    here = os.environ | {"PYTHONPATH": f"{ROOT / 'ch19'}:{ROOT}", "TRITON_CACHE_DIR": str(folder)} | more
    done = subprocess.run([sys.executable, "-c", program], env=here, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_integers_round_as_casts_do(tmp_path):
    ran(ROUNDED_ALIKE, tmp_path, TRITON_INTERPRET="1")


def test_blackwells_products_take_the_scales(tmp_path):
    products = set(re.findall(r"tcgen05\.mma[\w.:]*", ran(COMPILED, tmp_path)))
    assert products == {"tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X"}


@pytest.mark.parametrize(
    ("scales", "block", "kind"),
    [("*u8", 32, "mxf4.block_scale.scale_vec::2X"), ("*fp8e4nv", 16, "mxf4nvf4.block_scale.scale_vec::4X")],
    ids=["MXFP4", "NVFP4"],
)
def test_blackwells_products_of_four_bits_take_the_scales(tmp_path, scales, block, kind):
    ptx = ran(f"SCALES, BLOCK = {scales!r}, {block}\n{FOUR_BITS}", tmp_path)
    assert ".target sm_100a" in ptx
    assert set(re.findall(r"tcgen05\.mma[\w.:]*", ptx)) == {f"tcgen05.mma.cta_group::1.kind::{kind}"}

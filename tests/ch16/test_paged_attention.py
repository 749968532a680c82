"""ch16:paged_attention_blackwell: a key head's queries fit one tile of tensor cores, or are refused; e4m3 comes apart exactly."""

import os
import subprocess
import sys

import pytest

from tests.support.commands import ROOT_FIRST
from tests.support.teeth import ROOT

DECODER = """
import sys, torch
from shared_paged_attention import decoder

q, k = (torch.empty(1, heads, 64, device="meta") for heads in (int(sys.argv[1]), 1))
cache, table = torch.empty(1, 1, 16, 64, device="meta"), torch.empty(1, 1, dtype=torch.int32, device="meta")
assert decoder(q, k, k, cache, cache, None, None, table, 1)
"""


@pytest.mark.parametrize(("heads", "said"), [(16, ""), (17, "found 17 query heads per key head; expected at most 16")])
def test_more_query_heads_than_rows_of_a_tile_are_refused(heads, said):
    command = [sys.executable, "-c", DECODER, str(heads)]  # a process of its own: another chapter has files of the same names
    done = subprocess.run(command, cwd=ROOT / "ch16", capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode == 0) == (not said), done.stderr
    assert said in done.stderr


UNPACKED = """
import sys
import torch, triton, triton.language as tl
from shared_e4m3_rows import e4m3

@triton.jit
def unpack(words, values, total, WORDS: tl.constexpr):
    at = tl.program_id(0) * WORDS + tl.arange(0, WORDS)
    tl.store(values + at, e4m3(tl.load(words + at), False))
    tl.store(values + total + at, e4m3(tl.load(words + at), True))

codes = torch.arange(256, dtype=torch.uint8)
codes = codes[codes % 128 < 127]  # all but the two NaN
pairs = torch.cartesian_prod(codes, codes)
pairs = torch.cat((pairs, pairs[: -len(pairs) % 1024]))
values = torch.empty(2, len(pairs), dtype=torch.float16, device=sys.argv[1])
unpack[len(pairs) // 1024,](pairs.view(torch.int16).flatten().to(sys.argv[1]), values, len(pairs), WORDS=1024)
assert torch.equal(values.cpu().T, pairs.view(torch.float8_e4m3fn).half())
"""


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_every_word_comes_apart_into_its_two_elements(device, tmp_path):
    script = tmp_path / "unpacked.py"  # a file, as Triton reads the source of what it compiles
    script.write_text(UNPACKED)
    here = {**os.environ, "TRITON_INTERPRET": str(int(device == "cpu")), "PYTHONPATH": os.pathsep.join([str(ROOT / "ch16"), ROOT_FIRST])}
    done = subprocess.run([sys.executable, script, device], env=here, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr

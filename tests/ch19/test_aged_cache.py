"""A cache in 4 bits: its reader takes every word apart into the right codes, and gives back what its writer packed."""

import os
import subprocess
import sys

import pytest

from tests.support.commands import ROOT, ROOT_FIRST

UNPACKED = """
import sys
import torch, triton, triton.language as tl
from shared_aged_cache import old_of
from shared_aged_codes import quarters

@triton.jit
def unpack(words, values, total, WORDS: tl.constexpr):
    at = tl.program_id(0) * WORDS + tl.arange(0, WORDS)
    first, second, third, fourth = quarters(tl.load(words + at))
    tl.store(values + at, first)
    tl.store(values + total + at, second)
    tl.store(values + 2 * total + at, third)
    tl.store(values + 3 * total + at, fourth)

def unpacked(words):
    words = words.flatten().to(sys.argv[1])
    values = torch.empty(4, len(words), dtype=torch.float16, device=sys.argv[1])
    unpack[len(words) // 1024,](words, values, len(words), WORDS=1024)
    return values.cpu()

every = torch.arange(2**16)
codes = torch.stack([every >> 4 * quarter & 15 for quarter in range(4)])
assert torch.equal(unpacked(every.to(torch.int16)), (codes - 8).half())

rows = torch.randint(-7, 8, (64, 64), generator=torch.Generator().manual_seed(0)).float()
rows[:, 0] = 7  # the largest: a scale of 1
words, scales = old_of(rows)
assert torch.equal(scales, torch.ones(64))
assert torch.equal(unpacked(words).view(4, 64, 16).transpose(0, 1).reshape(64, 64).float(), rows)
"""


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_every_word_comes_apart_into_its_codes(device, tmp_path):
    script = tmp_path / "unpacked.py"  # a file, as Triton reads the source of what it compiles
    script.write_text(UNPACKED)
    path = os.pathsep.join([str(ROOT / "ch19"), ROOT_FIRST])
    here = {**os.environ, "TRITON_INTERPRET": str(int(device == "cpu")), "PYTHONPATH": path}
    done = subprocess.run([sys.executable, script, device], env=here, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

"""ch18:batch_invariant: a request's logits have the same bits alone and in a batch of any lengths, and the baseline's do not."""

import os
import subprocess
import sys

import pytest

from common.python.project import PROJECT_ROOT as ROOT

# Two SMs, so that a batch of few contexts is split into few parts.
SHARE = """
import sys
import shared_paged_decode
import torch
from baseline_batch_invariant import attention
from shared_fixed_decode import fixed_decoder
from shared_fixed_product import product
from shared_logits import share_of_same_bits

from common.python.child.sides.triton import mend_interpreter

mend_interpreter()
shared_paged_decode.sm_count = lambda: 2
torch.manual_seed(1)
lengths = [int(each) for each in sys.argv[2].split(",")]
pages = [-(-each // 16) for each in lengths]
own = torch.randperm(sum(pages)).int().split(pages)
table = torch.stack([torch.nn.functional.pad(each, (0, max(pages) - len(each))) for each in own])
keys, values = torch.randn(2, sum(pages), 16, 1, 32).bfloat16()
q, head = torch.randn(len(lengths), 2, 32).bfloat16(), torch.randn(1024, 64).bfloat16()
chosen = {"optimized": fixed_decoder, "baseline": attention}[sys.argv[1]]
print(float(share_of_same_bits(q, keys, values, table, torch.tensor(lengths).int(), head, lengths, chosen, product)))
"""


def share(side, lengths, tmp_path):
    script = tmp_path / "share.py"  # a file, as Triton reads the source of what it runs
    script.write_text(SHARE)
    here = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": os.pathsep.join([str(ROOT / "ch18"), str(ROOT)])}
    done = subprocess.run([sys.executable, script, side, lengths], env=here, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return float(done.stdout)


MIXED = "1,15,16,17,64,65,300,700,1500"


@pytest.mark.parametrize("lengths", ["1", "511,512,513", MIXED, pytest.param("5,8192,8193,9000", marks=pytest.mark.slow)])
def test_no_bit_depends_on_the_other_requests(lengths, tmp_path):
    """Of tables with a part or less, of two parts, and of more parts than are merged at once."""
    assert share("optimized", lengths, tmp_path) == 1


def test_bits_of_the_baseline_depend_on_them(tmp_path):
    assert share("baseline", MIXED, tmp_path) < 1

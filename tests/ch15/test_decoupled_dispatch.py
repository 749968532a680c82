"""ch15:decoupled_dispatch: the kernels of all ranks, one after another in Triton's interpreter."""

import os
import subprocess
import sys

import pytest

from common.python.project import PROJECT_ROOT

CHAPTER = PROJECT_ROOT / "ch15"

ROUND_TRIP = """
import sys
import torch
from optimized_decoupled_dispatch import answer, send

ranks, tokens, local, top, hidden = int(sys.argv[1]), 5, 3, 2, 40
choices = tokens * top

def addresses(buffers):
    return torch.tensor([buffer.data_ptr() for buffer in buffers])

torch.manual_seed(ranks)
x = torch.randn(ranks, tokens, hidden).bfloat16()
chosen = torch.rand(ranks, tokens, ranks * local).topk(top)[1]
scale = torch.randn(ranks, local, hidden).bfloat16()
rows = torch.full((ranks, ranks * choices, hidden), torch.nan, dtype=torch.bfloat16)  # what nobody sends is read by nobody
slots = torch.full((ranks, ranks * choices), 7)
returned = torch.full((ranks, choices, hidden), torch.nan, dtype=torch.bfloat16)
tables = [addresses(buffers) for buffers in (rows, slots, returned)]
for rank in range(ranks):
    send[(choices,)](x[rank], chosen[rank], tables[0], tables[1], choices, hidden, rank, TOP=top, LOCAL=local, RANKS=ranks, WIDE=64)
for rank in range(ranks):
    answer[(ranks * choices,)](rows[rank], slots[rank], scale[rank], tables[2], choices, hidden, WIDE=64)
right = x[:, :, None].float() * scale.flatten(0, 1)[chosen].float()
torch.testing.assert_close(returned.view_as(right).float(), right, rtol=0.01, atol=0.01)
assert (slots >= 0).sum() == ranks * choices, "every choice is for one rank"
"""


@pytest.mark.parametrize("ranks", [2, 4])
def test_every_choice_is_answered_by_its_expert(ranks):
    here = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": str(CHAPTER)}
    command = [sys.executable, "-c", ROUND_TRIP, str(ranks)]
    run = subprocess.run(command, env=here, capture_output=True, text=True, timeout=100, check=False)
    assert run.returncode == 0, run.stderr

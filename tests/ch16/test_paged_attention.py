"""ch16:paged_attention_blackwell: a key head's queries fit one tile of tensor cores, or are refused."""

import subprocess
import sys

import pytest

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

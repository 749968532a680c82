"""ch14:triton_intro: one read and one write of every value in the code for sm_90 and sm_100."""

from pathlib import Path

import pytest

from common.python.bench import BUILD_CACHE
from common.python.cache_files import keep_by_content
from common.python.disassembly import read_code
from tests.pairs.harness import Harness
from tests.pairs.tree import Side, pairs_of


@pytest.fixture(scope="module")
def harness():
    with Harness() as started:
        yield started


@pytest.mark.parametrize("capability", [(9, 0), (10, 0)])
def test_each_value_is_read_once_and_written_once_and_stays_in_registers(harness, capability):
    (pair,) = [pair for pair in pairs_of() if pair.target == "ch14:triton_intro"]
    observed = harness.compile(Side(pair, "optimized"), {"rows": 4096, "cols": 16384}, capability)
    (kernel,) = [kernel for cubin in observed.cubins for kernel in read_code(keep_by_content(Path(cubin), BUILD_CACHE))]
    counts = [sum(mark in text for text in kernel.instructions) for mark in ("LDG.E.128", "STG.E.128", "LDG", "STG", "STL")]
    assert counts == [8, 8, 8, 8, 0]  # 16384 values are 32 a thread, so 8 accesses of 4

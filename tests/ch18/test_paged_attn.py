"""Chapter 18: paged_attn's longest check shape, which is too much work for the checks of all pairs on a CPU."""

import pytest

from common.python.child.sides.loader import load_workload
from common.python.project import PROJECT_ROOT
from tests.pairs.harness import Harness
from tests.pairs.test_right_on_cpu import MOST_WORK
from tests.pairs.tree import pairs_of, sides_of

WORKLOAD = load_workload(PROJECT_ROOT / "ch18/workload_paged_attn.py")
LARGE = [shape for shape in WORKLOAD.check_at if sum(WORKLOAD.work(**shape).values()) >= MOST_WORK]


@pytest.mark.slow  # Triton's interpreter takes over 30 s
@pytest.mark.parametrize("side", ["baseline", "optimized"])
def test_a_prompt_of_4097_tokens_is_right(side):
    assert [shape["context"] for shape in LARGE] == [4097]
    (paged,) = [each for each in sides_of(pairs_of()) if each.file.name == f"{side}_paged_attn.py"]
    with Harness() as harness:
        harness.check(paged, LARGE)

"""Which GPU the runner of labs/blackwell_matmul lets a variant run on."""

import importlib.util

import pytest

from common.python.project import PROJECT_ROOT

SPEC = importlib.util.spec_from_file_location("run_blackwell_matmul", PROJECT_ROOT / "labs/blackwell_matmul/run_blackwell_matmul.py")
runner = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(runner)
BEST = "optimized_blackwell_matmul"
LAB = list((PROJECT_ROOT / "labs/blackwell_matmul").glob("optimized_*.cu"))


@pytest.mark.parametrize(
    ("variant", "runs_on"),
    [
        ("pseudo", {(8, 0), (9, 0), (10, 0), (10, 3)}),
        ("tma", {(9, 0), (10, 0), (10, 3)}),
        ("pipeline", {(9, 0)}),
        ("cluster", {(9, 0)}),
        ("best", {(9, 0)}),
        ("tcgen05", {(10, 0), (10, 3)}),
    ],
)
def test_a_variant_runs_where_its_instructions_are(variant, runs_on):
    known = [(7, 5), (8, 0), (9, 0), (10, 0), (10, 3), (12, 0)]
    expected = runs_on | ({(12, 0)} if variant in ("pseudo", "tma") else set())
    assert {capability for capability in known if runner.unmet(variant, capability) is None} == expected


def test_what_is_missing_is_said():
    assert runner.unmet("cluster", None) == "--variant cluster: found no GPU; expected one with wgmma and clusters"
    assert runner.unmet("tcgen05", (9, 0)) == "--variant tcgen05: found compute capability 9.0; expected tcgen05"
    assert set(runner.NEEDS) == {"best", *(path.stem.removeprefix("optimized_blackwell_matmul_") for path in LAB if path.stem != BEST)}

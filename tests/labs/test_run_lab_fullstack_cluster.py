"""Which GPU the runner of labs/fullstack_cluster accepts, and what it runs."""

import importlib.util

import pytest

from common.python.project import PROJECT_ROOT

SPEC = importlib.util.spec_from_file_location(
    "run_lab_fullstack_cluster", PROJECT_ROOT / "labs/fullstack_cluster/run_lab_fullstack_cluster.py"
)
runner = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(runner)


@pytest.mark.parametrize(("capability", "runs"), [((8, 0), False), ((9, 0), True), ((10, 0), False), (None, False)])
def test_only_hopper_has_wgmma(capability, runs):
    assert (runner.unmet(capability) is None) == runs


def test_both_sides_get_the_larger_count():
    command = runner.command_of(4096, 5, 1)
    assert command[-3:] == ["m=4096 n=4096 k=4096", "--iterations", "5"]

"""CUDA sides compile for every architecture that has what they need: readers own such GPUs, CI does not."""

import pytest

from common.python.build.nvcc import build
from common.python.machine.needs import unmet_capability
from common.python.pairs.directives import read_directives
from common.python.project import PROJECT_ROOT
from common.python.session.session import BUILD_CACHE
from tests.pairs.tree import pairs_of, parameters, sides_of
from tests.support.cuda_sides import skip_without_tools

ARCHITECTURES = {(8, 0): "80", (8, 6): "86", (8, 9): "89", (9, 0): "90a", (10, 0): "100a", (10, 3): "103a", (12, 0): "120"}
SLOW = (pytest.mark.slow, pytest.mark.timeout(900))

SIDES = [side for side in sides_of(pairs_of()) if side.file.suffix == ".cu"]


def architectures_of(side):
    """Those that meet the needs of the side and of its workload."""
    needs = [*read_directives(side.pair.workload).needs, *read_directives(side.file).needs]
    return [name for capability, name in ARCHITECTURES.items() if not unmet_capability(needs, capability)]


@pytest.mark.parametrize("side", parameters(SIDES, lambda _: SLOW))
def test_side_compiles_wherever_its_needs_are_met(side):
    skip_without_tools()
    flags = read_directives(side.file).nvcc
    built = build(side.file, architectures_of(side), flags=flags, cache=BUILD_CACHE, root=PROJECT_ROOT)
    assert built.library.is_file()


def test_what_needs_tensor_memory_compiles_for_both_data_center_blackwells():
    (needy,) = {tuple(architectures_of(side)) for side in SIDES if "tcgen05" in read_directives(side.pair.workload).needs}
    assert needy == ("100a", "103a")


def test_what_needs_nothing_compiles_for_all():
    (transpose,) = {tuple(architectures_of(side)) for side in SIDES if side.file.name == "baseline_transpose.cu"}
    assert transpose == tuple(ARCHITECTURES.values())

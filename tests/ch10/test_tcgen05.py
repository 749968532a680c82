"""ch10:tcgen05 on stand-ins for Blackwell: right in any order of events, and wrong without any wait."""

import shutil

import pytest

from common.python.child.sides.loader import load_workload
from common.python.pairs.directives import read_directives
from tests.ch10.emulated import CHAPTER, assert_right_however_late, build, inputs_of, is_right, shapes_of, skip_without_compiler, waits

pytestmark = pytest.mark.slow

WORKLOAD = load_workload(CHAPTER / "workload_tcgen05.py")
SIDE = "optimized_tcgen05.cu"
ROUNDS = {"m": 130, "n": 296, "k": 456}  # two tiles across and two down, whose two stages go round four times
SHAPES = shapes_of(WORKLOAD, ROUNDS)
WAITS = waits(SIDE, r"\b(barrier_wait|__syncthreads)\(")


@pytest.fixture(scope="module")
def side(tmp_path_factory):
    skip_without_compiler()
    return build(SIDE, tmp_path_factory.mktemp("side"))


def right(c, values):
    return is_right(WORKLOAD, c, values)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_it_is_right_however_late_its_copies_and_products_are(side, shape):
    assert_right_however_late(side, WORKLOAD, shape)


def test_all_waits_were_found():
    assert len(WAITS) == 5


@pytest.mark.parametrize(("place", "text"), WAITS)
def test_no_wait_can_be_left_out(side, place, text):
    values = inputs_of(WORKLOAD, ROUNDS)
    for laziness in ("late", "by chance", "at once"):
        for seed in range(8):
            try:
                if not right(side.run(values, ROUNDS, seed=seed, laziness=laziness, skipped=place), values):
                    return
            except RuntimeError:
                return
    pytest.fail(f"{place}: right without `{text}`, in every order that was tried")


@pytest.mark.parametrize("file", [SIDE, "baseline_tmem_triple_overlap.cu"])
def test_whoever_takes_the_address_of_its_tensor_memory_for_0_is_wrong(file, tmp_path):
    skip_without_compiler()
    text, honest = (CHAPTER / file).read_text(), "const uint32_t sums = shared.tensor_memory;"
    assert text.count(honest) == 1
    home = tmp_path / "home"
    shutil.copytree(CHAPTER, home, ignore=shutil.ignore_patterns("*.py", "*.json"))
    (home / file).write_text(text.replace(honest, "const uint32_t sums = 0;"))
    values = inputs_of(WORKLOAD, SHAPES[0])
    with pytest.raises(RuntimeError, match="outside the tensor memory"):
        build(file, tmp_path, home).run(values, SHAPES[0])


def test_where_there_is_no_tensor_memory_another_target_is_named():
    directives = read_directives(CHAPTER / "workload_tcgen05.py")
    assert "tcgen05" in directives.needs
    assert directives.instead == "ch10:wgmma_triple_overlap"

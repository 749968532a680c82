"""ch10:tcgen05 on stand-ins for Blackwell: right in any order of events, wrong without any wait, proven by its machine code."""

import re
import shutil

import pytest

from common.python.child.sides.loader import load_workload
from common.python.pairs.directives import read_directives
from tests.ch10 import model
from tests.ch10.emulated import CHAPTER, LAZINESS, build, inputs_of, is_right, shapes_of, skip_without_compiler, waits
from tests.cuda_sides import arguments_of, constants_of
from tests.proved import states
from tests.teeth import BF16_BITS, ROOT, assert_teeth

pytestmark = pytest.mark.slow

WORKLOAD = load_workload(CHAPTER / "workload_tcgen05.py")
SIDE = "optimized_tcgen05.cu"
BASELINE = ROOT / read_directives(CHAPTER / "workload_tcgen05.py").baseline
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
    values = inputs_of(WORKLOAD, shape)
    for laziness in LAZINESS:
        assert right(side.run(values, shape, laziness=laziness), values), laziness


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


@pytest.mark.parametrize("path", [CHAPTER / SIDE, BASELINE], ids=lambda path: path.name)
def test_every_argument_has_something_to_bind(path):
    assert arguments_of(WORKLOAD, path) == ["a", "b", "c", "m", "n", "k", "stream"]


def test_where_there_is_no_tensor_memory_another_target_is_named():
    directives = read_directives(CHAPTER / "workload_tcgen05.py")
    assert "tcgen05" in directives.needs
    assert directives.instead == "ch10:wgmma_triple_overlap"


def test_all_that_is_claimed_is_in_the_machine_code_and_separates_the_sides(tmp_path):
    found = states(CHAPTER / SIDE, BASELINE, "100a", tmp_path)
    assert {claim for claim, state in found.items() if state != "proven"} == set()


def test_the_ratio_expected_is_that_of_loading_and_of_mma_sync():
    """Prose against formula."""
    rows, depth, columns = 128, 64, constants_of(CHAPTER / SIDE)["TILE_N"]
    pattern = (
        r"([\d.]+)x, the (\d+) KB of a step take an SM (\d+) cycles at (\d+) bytes each, its ([\d.]+) M FMAs (\d+) by mma.sync at (\d+), "
    )
    found = re.match(pattern, read_directives(CHAPTER / SIDE).expects).groups()
    ratio, kilobytes, loading, a_cycle, products, multiplying, rate = map(float, found)
    assert kilobytes == (rows + columns) * depth * 2 / 1024
    assert (a_cycle, rate) == (model.L2_PORT, model.MMA_SYNC)
    assert loading == kilobytes * 1024 / a_cycle
    assert products == round(rows * columns * depth / 1e6, 1)
    assert multiplying == pytest.approx(rows * columns * depth / rate, rel=0.01)
    assert ratio == round(multiplying / loading, 1)


def test_the_tolerance_has_teeth():
    assert_teeth(WORKLOAD, {"m": 64, "n": 64, "k": 512}, reduced=("a", 1), bits=BF16_BITS - 1)

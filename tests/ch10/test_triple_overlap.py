"""Chapter 10's products run on the CPU, on stand-ins for TMA, barriers and tensor cores: right answers, and no wait that is not needed."""

import re

import pytest
import torch

from common.python.build.nvcc import build as build_library
from common.python.child.sides.cuda import Names, check_source
from common.python.child.sides.loader import load_workload
from common.python.gate.expectations import read_expectations
from common.python.pairs.directives import read_directives
from tests.ch10 import model
from tests.ch10.emulated import CHAPTER, LAZINESS, SKELETON, build, inputs_of, is_right, shapes_of, skip_without_compiler, waits
from tests.cuda_sides import constants_of
from tests.proved import unexpected
from tests.teeth import BF16_BITS, ROOT, assert_accepts, assert_teeth

pytestmark = pytest.mark.slow

WORKLOAD = load_workload(CHAPTER / "workload_wgmma_triple_overlap.py")
SUMS = "shared_wgmma_sums.cuh"
WGMMA, TMEM = "optimized_wgmma_triple_overlap.cu", "optimized_tmem_triple_overlap.cu"
BASELINES = ["baseline_wgmma_triple_overlap.cu", "baseline_tmem_triple_overlap.cu"]
SIDES = [WGMMA, TMEM, *BASELINES]
ROUNDS = {"m": 300, "n": 648, "k": 392}  # 9 or 12 tiles on two multiprocessors: accumulators go round, and rings of 4 by tiles of 7 steps
SHAPES = shapes_of(WORKLOAD, ROUNDS)
SEEDS = range(8)


@pytest.fixture(scope="module")
def emulated(tmp_path_factory):
    skip_without_compiler()
    return {side: build(side, tmp_path_factory.mktemp("side")) for side in SIDES}


def right(c, values):
    return is_right(WORKLOAD, c, values)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("side", SIDES)
def test_a_side_is_right_however_late_its_copies_and_products_are(emulated, side, shape):
    values = inputs_of(WORKLOAD, shape)
    for laziness in LAZINESS:
        assert right(emulated[side].run(values, shape, laziness=laziness), values), laziness


WAIT = r"\b(barrier_wait|warpgroup_sync|wait_until_stores_have_read|__syncthreads|wgmma_wait<\d>)\("
SKELETON_WAITS = waits(SKELETON, WAIT)
OWN_WAITS = {WGMMA: waits(SUMS, WAIT), **{side: waits(side, WAIT) for side in (TMEM, *BASELINES)}}
LEFT_TO_THE_OTHER = {WGMMA: r"!Mma::IN_REGISTERS", TMEM: r"(?<!!)Mma::IN_REGISTERS"}
# At the end load waits for commits; where threads arrive for their products instead, none of them ends before it has.
FOR_COMMITS = "barrier_wait(&shared.consumed[at.stage], at.parity ^ 1);"
WAITS = [
    (side, *wait)
    for side in SIDES
    for wait in (*(() if side in BASELINES else SKELETON_WAITS), *OWN_WAITS[side])
    if not re.search(LEFT_TO_THE_OTHER.get(side, "$^"), wait[1]) and (side, wait[1]) != (WGMMA, FOR_COMMITS)
]


def test_all_waits_were_found():
    assert len(SKELETON_WAITS) == 11
    assert [len([wait for wait in WAITS if wait[0] == side]) for side in SIDES] == [10, 11, 3, 4]


@pytest.mark.parametrize(("side", "place", "text"), WAITS)
def test_no_wait_can_be_left_out(emulated, side, place, text):
    values = inputs_of(WORKLOAD, ROUNDS)
    for laziness in ("late", "by chance", "at once"):
        for seed in SEEDS:
            try:
                if not right(emulated[side].run(values, ROUNDS, seed=seed, laziness=laziness, skipped=place), values):
                    return
            except RuntimeError:
                return
    pytest.fail(f"{place}: right without `{text}`, in every order that was tried")


def test_rows_that_no_tensor_map_takes_are_refused(emulated):
    shape = {"m": 8, "n": 12, "k": 8}
    with pytest.raises(RuntimeError):
        emulated[WGMMA].run(inputs_of(WORKLOAD, shape), shape)


@pytest.mark.parametrize("side", SIDES)
def test_every_argument_has_something_to_bind(side):
    shape = WORKLOAD.check_at[0]
    names = Names.of(WORKLOAD, read_directives(CHAPTER / side), inputs_of(WORKLOAD, shape), shape)
    assert [argument.name for argument in check_source(CHAPTER / side, names).launch] == ["a", "b", "c", "m", "n", "k", "stream"]


def test_both_workloads_are_the_same_work():
    other = load_workload(CHAPTER / "workload_tmem_triple_overlap.py")
    assert other.time_at == WORKLOAD.time_at
    assert other.tolerance("optimized") == WORKLOAD.tolerance("optimized")
    assert read_directives(CHAPTER / "workload_tmem_triple_overlap.py").instead == "ch10:wgmma_triple_overlap"


def test_the_ratios_expected_are_those_of_the_times_that_are_named_and_of_the_tiles_that_took_them():
    """Prose against formula, and against the rows that were accepted since."""
    deep, at, shallow, at_shallow, *times = (
        float(number) for number in re.findall(r"\d+(?:\.\d+)?", expected_of(WGMMA).replace("H200", ""))
    )
    assert [at, at_shallow] == [WORKLOAD.timed_shapes[name]["k"] for name in ("deep", "shallow")]
    baseline, optimized = times[:2], times[2:]
    assert [deep, shallow] == [pytest.approx(before / after, abs=0.006) for before, after in zip(baseline, optimized, strict=True)]
    columns = {side: columns_of(side) for side in (WGMMA, "baseline_wgmma_triple_overlap.cu")}
    assert list(columns.values()) == [192, 128]
    said = " ".join((CHAPTER / "workload_wgmma_triple_overlap.py").read_text().split())
    of_the_baseline = [(columns * 128 // 256, (128 + columns) * 64 * 2 // 256 // 4) for columns in (128, 192)]  # sums, chunks: registers
    assert (
        "with 128 columns {} and {} registers, with 192 columns {} and {}, of the 128".format(*of_the_baseline[0], *of_the_baseline[1])
        in said
    )
    assert "one of 128 another H200 {:.2f} ms and {:.2f} ms (938acf7)".format(*(took / 1000 for took in baseline)) in said
    assert "{:.2f} ms and {:.2f} ms for the optimized side".format(*(took / 1000 for took in optimized)) in said
    assert f"{deep}x and {shallow}x were expected" in said
    assert_rows_are(said)


def assert_rows_are(said):
    """Whether the ratios and the times, in ms, that are told of both sides on one GPU are those accepted."""
    rows = read_expectations(CHAPTER / "expectations_h200.json").pairs["wgmma_triple_overlap"]
    accepted = [rows[name] for name in ("deep", "shallow")]
    pattern = r"([\d.]+) ms became ([\d.]+) ms, ([\d.]+)x, and ([\d.]+) ms ([\d.]+) ms, ([\d.]+)x\."
    told = [float(number) for number in re.search(pattern, said).groups()]
    for row, (baseline, optimized, ratio) in zip(accepted, (told[:3], told[3:]), strict=True):
        assert ratio == pytest.approx(row.ratio.estimate, rel=0.02)
        times = [row.sides[half].time_ns.estimate / 1e6 for half in ("baseline", "optimized")]
        assert [baseline, optimized] == pytest.approx(times, rel=0.03)


def expected_of(side):
    return read_directives(CHAPTER / side).expects


def columns_of(side):
    """Of the tiles of c that a side multiplies."""
    if found := re.search(r"WgmmaSums<2, AsItIs, (\d+)>", (CHAPTER / side).read_text()):
        return int(found[1])
    return constants_of(CHAPTER / side)["TILE_N"]


def test_a_step_takes_shared_memory_as_long_as_is_said():
    """Prose against formula."""
    columns = columns_of(WGMMA)
    read, written = 2 * 4 * (64 + columns) * 32, (128 + columns) * 128  # bytes: products of 64 rows, 16 deep, and a step's tiles
    said = (CHAPTER / WGMMA).read_text()
    assert f"a step's products, {128 * columns // 32} cycles, which read {read >> 10} KB while the TMA writes {written >> 10} KB" in said
    assert f"it takes {(read + written) // model.SHARED}." in said
    assert f"With 128 columns it would take {(2 * 4 * (64 + 128) * 32 + 256 * 128) // model.SHARED} for {128 * 128 // 32}." in said


def test_blackwells_ratio_is_that_of_a_step_that_waits_and_of_one_whose_loads_never_do():
    """Prose against formula: of the baseline's two blocks one may load while the other multiplies, and neither hides its own wait."""
    pattern = r"([\d.]+)x, a step .* (\d+) \+ (\d+) \+ (\d+) cycles to load and (\d+) to multiply, two an SM (\d+) each; here (\d+)$"
    ratio, latency, passing, storing, products, shared, here = map(float, re.match(pattern, expected_of(TMEM)).groups())
    rows, depth, columns = 128, 64, constants_of(CHAPTER / "baseline_tmem_triple_overlap.cu")["TILE_N"]
    assert f"TILE_N = {columns};" in (CHAPTER / TMEM).read_text()
    assert "__launch_bounds__(THREADS, 2)" in (CHAPTER / "baseline_tmem_triple_overlap.cu").read_text()
    loaded = (rows + columns) * depth * 2
    assert (latency, passing, storing) == (model.LATENCY, loaded / model.L2_PORT, loaded / model.SHARED)
    assert latency + passing + storing == model.loaded_by_threads(loaded)
    assert products == rows * columns * depth / model.TCGEN05
    assert shared == (latency + passing + storing + products) / 2 > passing  # else the port would be what two blocks wait for
    assert here == max(passing, products)
    assert ratio == round(shared / here, 1)


def test_what_is_not_proved_of_blackwells_sides_is_said_at_their_head():
    heads = {path.name: re.match(r"(//.*\n)+", path.read_text())[0] for path in CHAPTER.glob("optimized_t*.cu")}
    blackwells = {name: head for name, head in heads.items() if "tcgen05_ld" in head}
    assert set(blackwells) == {TMEM, "optimized_tmem_triple_overlap_two_cta.cu", "optimized_tcgen05.cu"}
    assert all("\n// Nothing of this has run on a GPU. " in head for head in blackwells.values())
    assert all(f"head of {TMEM}" in head for name, head in blackwells.items() if name != TMEM)


def test_the_last_check_goes_round_on_every_gpu_that_can_run_it():
    shape, multiprocessors = WORKLOAD.check_at[-1], 148
    tiles = -(-shape["m"] // 128) * -(-shape["n"] // 256)
    assert tiles > 2 * multiprocessors
    assert all(shape[name] * 2 % 16 == 0 for shape in (*WORKLOAD.check_at, *WORKLOAD.timed_shapes.values()) for name in "nk")


def test_the_registers_of_the_roles_fit_what_the_block_began_with():
    text = (CHAPTER / SUMS).read_text()
    load, multiply = (int(number) for number in re.findall(r"_registers<(\d+)>", text))
    began = 65536 // 384 // 8 * 8
    assert load + 2 * multiply <= 3 * began == 3 * 168


@pytest.mark.parametrize(("side", "architecture"), [(WGMMA, "90a"), (TMEM, "100a"), ("baseline_wgmma_triple_overlap.cu", "90a")])
def test_ptxas_spills_nothing_and_does_not_serialize(side, architecture, tmp_path):
    log = build_library(CHAPTER / side, [architecture], cache=tmp_path, root=ROOT).log
    assert "0 bytes spill stores, 0 bytes spill loads" in log
    assert "warning" not in log.lower()
    assert "serialized" not in log


@pytest.mark.parametrize(("pair", "architecture"), [("wgmma", "90a"), ("tmem", "100a")])
def test_all_that_is_claimed_is_in_the_machine_code_and_separates_the_sides(pair, architecture, tmp_path):
    optimized, baseline = (CHAPTER / f"{half}_{pair}_triple_overlap.cu" for half in ("optimized", "baseline"))
    assert unexpected(optimized, baseline, architecture, tmp_path) == {}


def test_the_tolerance_has_teeth():
    assert_teeth(WORKLOAD, {"m": 64, "n": 64, "k": 512}, reduced=("a", 1), bits=BF16_BITS - 1)


@pytest.mark.parametrize("pair", ["wgmma", "tmem"])
def test_the_library_is_right_on_values_it_had_not_seen(pair):
    assert_accepts(WORKLOAD, f"ch10/library_{pair}_triple_overlap.py", WORKLOAD.check_at[3])


def test_the_answer_of_a_product_is_rounded_to_bf16(emulated):
    values = inputs_of(WORKLOAD, WORKLOAD.check_at[2])
    exact = values["a"].float() @ values["b"].float().T
    found = emulated[TMEM].run(values, WORKLOAD.check_at[2])
    assert (found != exact.to(torch.bfloat16)).float().mean() < 0.01

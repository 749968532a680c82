"""The ladder of chapter 10's product: its order, that all that is expected is over the step before, and the cycles it is reckoned from."""

import re

import pytest

from common.python.directives import ladder_expects, ladder_steps, read_directives
from common.python.discovery import discover
from common.python.ladder import with_rungs
from common.python.loader import load_workload
from tests.ch10.emulated import CHAPTER
from tests.cuda_sides import constants_of
from tests.teeth import ROOT

WORKLOAD = CHAPTER / "workload_matmul.py"
SHAPES = load_workload(WORKLOAD).timed_shapes
HEADERS = (ROOT / "common/cuda/operands.cuh", ROOT / "common/cuda/warpgroup.cuh", CHAPTER / "shared_tile.cuh")
CONSTANTS = constants_of(*HEADERS, CHAPTER / "shared_matmul_pipeline.cuh", CHAPTER / "optimized_matmul.cu")
TILE_M, TILE_N, TILE_K = (CONSTANTS[name] for name in ("TILE_M", "TILE_N", "TILE_K"))
PRODUCTS, CLOCK = TILE_M * TILE_N * TILE_K, 1.517  # a step; GHz that power allows
STEP = PRODUCTS / 2048  # cycles
STORE = 2400  # cycles of four panels
SMS, CLUSTERS = 132, 66
SPECIALIZED, PINGPONG, PERSISTENT = (
    f"ch10/optimized_{name}.cu" for name in ("warp_specialized_pipeline", "wgmma_triple_overlap", "persistent_matmul")
)


def numbers(text):
    return [float(number) for number in re.findall(r"(?<![\w.])\d+(?:\.\d+)?", text)]


def numbers_of(file):
    """What the file of a side expects, in numbers."""
    return numbers(read_directives(CHAPTER / file).expects)


def numbers_behind(step):
    """What the ladder expects of a step, in numbers."""
    return numbers(ladder_expects(WORKLOAD)[step])


def us(k):
    """Of a tile's products."""
    return round(k / TILE_K * STEP / CLOCK / 1000)


def steps(shape):
    return -(-shape["k"] // TILE_K)


def tiles(shape, rows, columns):
    return -(-shape["m"] // rows) * -(-shape["n"] // columns)


def waves(shape, rows=TILE_M, columns=TILE_N, workers=SMS):
    return -(-tiles(shape, rows, columns) // workers)


def sides():
    (pair,) = [pair for pair in discover(ROOT).pairs if pair.target == "ch10:matmul"]
    return with_rungs(pair, ROOT).sides


def test_the_ladder_climbs_as_its_readers_are_told():
    assert list(sides())[1:-1] == [
        *("shared_tile", "register_tile"),
        *("baseline_double_buffered_pipeline", "double_buffered_pipeline", "pipeline_3stage", "tma_2d_pipeline"),
        *("wgmma", "loader", "walk", "warp_specialized_pipeline", "wgmma_triple_overlap"),
        *("clustered", "persistent_matmul", "optimized"),
    ]


def test_all_that_is_expected_of_a_step_is_over_the_step_before():
    before = {after.name: path for path, after in zip(sides().values(), list(sides().values())[1:], strict=False)}
    pairs = {pair.sides["optimized"]: pair for pair in discover(ROOT).pairs}
    for step in ladder_steps(WORKLOAD):
        if "/" in step and step not in ladder_expects(WORKLOAD):
            side = ROOT / step
            assert pairs[side].sides["baseline"] == before[side.name], f"{step} expects something over another side"


def test_a_step_takes_all_that_shared_memory_gives():
    stage = (TILE_M + TILE_N) * TILE_K * 2
    assert CONSTANTS["STAGES"] * stage + 2 * 64 * 64 * 2 <= 227 << 10
    assert STEP == 1024
    read = CONSTANTS["CONSUMERS"] * TILE_K // 16 * (64 + TILE_N) * 16 * 2
    assert (read + stage) / STEP == 128


def test_three_roles_are_expected_to_hide_what_a_tile_took_beside_its_products():
    ratio, k, deep_ratio, other, pause, deep_pause, shallow, deep, stored, panels, cycles = numbers_of(
        "optimized_warp_specialized_pipeline.cu"
    )
    assert [us(k), us(other)] == [shallow, deep]
    assert panels == TILE_N // CONSTANTS["PANEL"]
    assert panels * cycles == STORE
    assert stored == round(STORE / CLOCK / 1000, 1)
    assert ratio == round((shallow + pause) / (shallow + stored), 2)
    assert deep_ratio == round((deep + deep_pause) / (deep + stored), 2)
    said = (CHAPTER / "workload_warp_specialized_pipeline.py").read_text()
    both = TILE_M * CONSTANTS["PANEL"] * 2
    assert f"{cycles:g} cycles\nthat are expected for a panel of each warpgroup, {both >> 10} KB, {both // 128} write it" in said
    assert f"{both // 64} send it on at 64" in said
    assert f"16 waves of {shallow + pause:g} us and {deep + deep_pause:g} us, of which products take {shallow:g} and {deep:g}" in said

    over_a_walk, at, less_deep, at_less, now, before = numbers_behind(SPECIALIZED)
    assert (now, over_a_walk, less_deep) == (stored, *(round((us(k) + before) / (us(k) + stored), 2) for k in (at, at_less)))
    assert f"a store took {before:g} us" in said
    assert f"but {before:g} to store stay" in read_directives(CHAPTER / "optimized_matmul_walk.cu").expects


def test_persistence_is_expected_to_hide_a_start_and_a_store_by_the_tma():
    ratio, k, deep_ratio, other, pause, deep_pause, shallow, deep = numbers_of("optimized_persistent_matmul.cu")
    assert [us(k), us(other)] == [shallow, deep]
    assert (ratio, deep_ratio) == (round((shallow + pause) / shallow, 1), round((deep + deep_pause) / deep, 2))
    said = (CHAPTER / "workload_persistent_matmul.py").read_text()
    took, deep_took, store = map(
        int, re.search(r"that baseline (\d+) and (\d+) us beside its products, of which the store took (\d+)", said).groups()
    )
    stored = round(STORE / CLOCK / 1000, 1)
    assert f"store takes {STORE} cycles, {stored} us at {CLOCK:.2f} GHz" in said
    assert [pause, deep_pause] == [pytest.approx(us + stored - store) for us in (took, deep_took)]
    assert [round((us - store) * CLOCK * 10) * 100 for us in (took, deep_took)] == [4600, 1500]
    over_clustered, at, less_deep, at_less, cycles = numbers_behind(PERSISTENT)
    assert cycles == STORE
    assert (over_clustered, less_deep) == tuple(round(1 + STORE / (k / TILE_K * STEP), 2) for k in (at, at_less))


def test_a_narrower_tile_costs_ping_pong_more_than_draining_did():
    said, columns = WORKLOAD.read_text(), 192
    assert f"WgmmaSums<2, AsItIs, {columns}>" in (ROOT / PINGPONG).read_text()
    read, written = 2 * 4 * (64 + columns) * 32, (TILE_M + columns) * 128  # bytes: products of 64 rows, 16 deep, and a step's tiles
    step = (read + written) // 128
    assert f"shared memory takes {step} cycles a step where the products take {TILE_M * columns // 32}" in said
    roles = [waves(shape) * (steps(shape) * STEP + STORE) for shape in SHAPES.values()]
    turns = [waves(shape, columns=columns) * steps(shape) * step for shape in SHAPES.values()]
    clusters = [waves(shape, 2 * TILE_M, workers=CLUSTERS) * (steps(shape) * STEP + STORE) for shape in SHAPES.values()]
    assert (
        "makes {} such tiles at\n8192, {} at 4096 and {} at".format(*(waves(shape, columns=columns) for shape in SHAPES.values())) in said
    )
    assert "it made {}, {} and {} of 128 x 256".format(*map(waves, SHAPES.values())) in said
    ratios = numbers_behind(PINGPONG)
    assert ratios[0::2] == [round(one / other, 2) for one, other in zip(roles, turns, strict=True)]
    assert ratios[1::2] == [8192, 4096]
    ratios = numbers_of("optimized_matmul_clustered.cu")[:5]
    assert ratios[0::2] == [round(one / other, 2) for one, other in zip(turns, clusters, strict=True)]
    assert clusters == roles, "over the step before ping-pong nothing is expected"


def test_tensor_cores_in_place_take_fewer_cycles_a_step():
    ratio, rate, before, now, less = numbers_of("optimized_matmul_wgmma.cu")
    assert before == pytest.approx(PRODUCTS / rate, rel=0.01)
    assert ratio == round(before / now * (1 - less / 100), 1)
    ratio, fmas, million, whole, multiply = numbers_behind("ch10/baseline_double_buffered_pipeline.cu")
    assert multiply == before
    assert million == round(PRODUCTS / 1e6, 1)
    assert fmas == 128 * 3 / 4
    assert ratio == round(PRODUCTS / whole / fmas)
    load, read, products = re.search(
        r"(\d+) cycles to load, (\d+) to .* and (\d+)", read_directives(ROOT / ladder_steps(WORKLOAD)[3]).expects
    ).groups()
    assert whole == int(load) + int(read) + int(products)


def test_the_whole_ladder_is_expected_to_gain_what_tensor_cores_make_of_the_baselines_products():
    ratio, baseline, lines, few, tensor, *_, last = numbers_of("optimized_matmul.cu")
    assert baseline == round(few / lines)
    assert tensor == PRODUCTS / STEP
    assert abs(ratio / (tensor * 3 / 4 / (few / lines)) - 1) < 0.05
    divided = []
    for shape in SHAPES.values():
        count, k_steps = tiles(shape, 2 * TILE_M, TILE_N), steps(shape)
        left = count % CLUSTERS
        idle = k_steps - left * k_steps / CLUSTERS
        now = count * k_steps / CLUSTERS + 8 if idle >= CONSTANTS["WORTH"] else waves(shape, 2 * TILE_M, workers=CLUSTERS) * k_steps
        divided.append(round(waves(shape, 2 * TILE_M, workers=CLUSTERS) * k_steps / now, 2))
    assert divided[0] == last
    assert "so {:g}x, {:g}x, as 8 idle steps are not worth it, and {:g}x.".format(*divided) in WORKLOAD.read_text()

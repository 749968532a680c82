"""The ladder of chapter 10's product: its order, the cycles from which a step over the one before is reckoned, and what was measured."""

import re

import pytest

from common.python.child.sides.loader import load_workload
from common.python.gate.expectations import read_expectations
from common.python.pairs.directives import ladder_expects, ladder_steps, read_directives
from common.python.pairs.discovery import discover, with_rungs
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


# --- what was measured, in the order of SHAPES

ROWS = read_expectations(CHAPTER / "expectations_h200.json").pairs["matmul"]
SAID = " ".join(WORKLOAD.read_text().split())
RATE = SMS * 1.98e3  # cycles of all SMs in a us


def took(step, name):
    """us of a step, by its name in a row, at a shape."""
    return ROWS[name].sides[step].time_ns.estimate / 1000


def rates(step):
    """Products of an SM in a cycle."""
    return [shape["m"] * shape["n"] * shape["k"] / took(step, name) / RATE for name, shape in SHAPES.items()]


def gains(step):
    """What the step makes of the speed of the one before it."""
    names = list(sides())
    before = names[names.index(step) - 1]
    return [took(before, name) / took(step, name) for name in SHAPES]


def predicted(step):
    """What is expected of a step, as text."""
    path = next(path for name, path in sides().items() if name == step)
    of_steps = {ROOT / file: text for file, text in ladder_expects(WORKLOAD).items()}
    return of_steps.get(path) or read_directives(path).expects


def told(pattern):
    """The numbers that a pattern, whose every # is a number, finds in the workload."""
    (found,) = re.findall(re.escape(pattern).replace(r"\#", r"(\d+(?:\.\d+)?)"), SAID)
    return [float(number) for number in ([found] if isinstance(found, str) else found)]


def near(values, rel=0.02):
    return pytest.approx(values, rel=rel)


def test_the_baseline_is_told_to_be_slow_where_a_power_of_two_parts_its_rows():
    *last, expected_last = told("makes #, # and # products an SM and cycle of 1.98 GHz, where # were expected")
    *first, expected = told("and the baseline #, # and #, where # were")
    assert (last, first) == (near(rates("optimized")), near(rates("baseline")))
    assert [expected, expected_last] == [round(256 / 18), 2048 * 3 / 4]
    kib, less_kib, stride = told("Its rows lie # and # KB apart in the first two shapes, powers of two, and # bytes in the third")
    assert [kib * 1024, less_kib * 1024, stride] == [2 * shape["k"] for shape in SHAPES.values()]
    assert [stride % 128 == 0 for stride in (kib * 1024, less_kib * 1024, stride)] == [True, True, False]
    rate, expected, *gained, _ = told(
        "shared_tile makes # products a cycle at every shape, of # expected, and so gains #x, #x and #x, not #x"
    )
    assert (rates("shared_tile"), gained) == (near([rate] * 3), near(gains("shared_tile")))
    assert expected == 256 / 8


@pytest.mark.parametrize(
    ("step", "pattern"),
    [
        ("register_tile", "register_tile gained #x, #x and #x, not #x"),
        ("baseline_double_buffered_pipeline", "first on tensor cores, gained #x, #x and #x, not #x"),
        ("double_buffered_pipeline", "double_buffered_pipeline, #x, #x and #x,"),
        ("pipeline_3stage", "pipeline_3stage, #x, #x and #x,"),
        ("wgmma", "wgmma gained #x, #x and #x, not #x"),
    ],
)
def test_what_a_step_gained_at_every_shape_is_told(step, pattern):
    *gained, expected = (*told(pattern), *numbers(predicted(step))[: "not" not in pattern])
    assert gained == near(gains(step))
    assert predicted(step).startswith(f"{expected:g}x,")


MISSED_WHERE_AWKWARD = {
    "tma_2d_pipeline": "tma_2d_pipeline #x, not #x",
    "walk": "walk #x, not #x",
    "wgmma_triple_overlap": "ping-pong #x, not #x",
    "clustered": "clustered #x, not #x",
    "optimized": "the last step #x, not #x",
}


@pytest.mark.parametrize(("step", "pattern"), MISSED_WHERE_AWKWARD.items())
def test_what_a_step_gained_at_the_awkward_shape_alone_is_told(step, pattern):
    gained, expected = told(pattern)
    assert gained == near(gains(step)[2])
    assert max(gained / expected, expected / gained) >= 1.05
    assert f"{expected:g}x" in (SAID.partition("Expected")[0] if step == "optimized" else predicted(step))


def test_what_a_step_of_wgmma_gains_is_less_what_a_tile_takes_beside_its_steps():
    (ratio, beside) = told("a step gains #x, and # us a tile beside its steps stay")
    tile = {step: [took(step, name) / waves(SHAPES[name]) for name in ("medium", "large")] for step in ("tma_2d_pipeline", "wgmma")}
    per_64_steps = {step: more - less for step, (less, more) in tile.items()}
    assert per_64_steps["tma_2d_pipeline"] / per_64_steps["wgmma"] == near(ratio)
    assert [less - per_64_steps[step] for step, (less, _) in tile.items()] == near([beside] * 2)


def test_the_awkward_shape_is_told_with_its_lines_sectors_and_waves():
    stride = 2 * SHAPES["awkward"]["k"]
    starts = [row * stride for row in range(TILE_N)]
    lines, sectors = ([(start + 127) // size - start // size + 1 for start in starts] for size in (128, 32))
    assert lines.count(2) / TILE_N == 7 / 8
    assert (sectors.count(5) / TILE_N, sectors.count(4) / TILE_N) == (1 / 2, 1 / 2)
    assert "128 bytes each, seven in eight lie in two lines, and half in five sectors, not four" in SAID
    there, more, fewer, waits, at_4096 = told("wgmma took # us where # waves for # make # of the # at 4096")
    assert [there, at_4096] == near([took("wgmma", "awkward"), took("wgmma", "medium")])
    assert [more, fewer] == [waves(SHAPES["awkward"]), waves(SHAPES["medium"])]
    assert waits == at_4096 * more / fewer
    assert told("fetches a tile of b once for two blocks, #.") == near([took("clustered", "awkward")])


def test_the_chapter_tells_what_ping_pong_loses_and_what_the_top_makes_of_the_library():
    said = (CHAPTER / "README.md").read_text()
    lost = [float(percent) for percent in re.search(r"That loses (\d+) % at 8192 and (\d+) % at 4096", said).groups()]
    assert [1 - percent / 100 for percent in lost] == near(gains("wgmma_triple_overlap")[:2])
    assert float(re.search(r"but (\S+)x at the awkward shape, whose rows", said)[1]) == near(gains("clustered")[2])
    told = re.search(r"makes (\S+)x of the speed of `torch.mm` at 8192, (\S+)x at 4096, and (\S+)x at the awkward", said).groups()
    of_library = [took("library", name) / took("optimized", name) for name in SHAPES]
    assert of_library == pytest.approx([float(ratio) for ratio in told], abs=0.005)

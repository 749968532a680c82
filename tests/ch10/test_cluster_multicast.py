"""What multicast is expected to gain follows from the bytes of a step of small tiles, and what was counted is told without a slip.

That both sides are right, and not without one of their waits, is in test_matmul_pipeline.py.
"""

import re

import pytest

from common.python.claims import parse_claim
from common.python.directives import read_directives
from common.python.loader import load_workload
from tests.ch10 import model
from tests.ch10.emulated import CHAPTER
from tests.cuda_sides import constants_of
from tests.teeth import ROOT

SMALL, WORKLOAD = CHAPTER / "shared_cluster_multicast.cuh", CHAPTER / "workload_cluster_multicast.py"
OPTIMIZED = read_directives(CHAPTER / "optimized_cluster_multicast.cu")
HEADERS = (ROOT / "common/cuda/operands.cuh", ROOT / "common/cuda/warpgroup.cuh", CHAPTER / "shared_tile.cuh")
CONSTANTS = constants_of(*HEADERS, CHAPTER / "shared_matmul_pipeline.cuh", SMALL)
ROWS, COLUMNS, TILE_K = (CONSTANTS[name] for name in ("ROWS", "COLUMNS", "TILE_K"))
A, B = ROWS * TILE_K * 2, COLUMNS * TILE_K * 2  # bytes of a step
PORT = (A + B) // model.L2_PORT  # cycles
PRODUCTS = ROWS * COLUMNS * TILE_K // model.WGMMA
SECTOR, DEPTH = 32, 8192
FILLED = 120
"""SMs of the H200 on which sectors were counted that clusters of 4 or of 8 fill."""

TEXT = WORKLOAD.read_text()
SAID = re.sub(r"\s+", " ", TEXT)
((SHAPE,),) = (load_workload(WORKLOAD).timed_shapes.values(),)
ROW = re.compile(r"^ +(\d+) x (\d+) +([\d. ]+)$", re.MULTILINE)
COUNTED = {(int(m), int(n)): [float(number) for number in numbers.split()] for m, n, numbers in ROW.findall(TEXT)}
"""For every c, of millions of sectors: those that the SMs got, those read for the baseline, and for clusters of (1,) 2, 4 and 8."""

BY_4 = {c: (numbers[0], numbers[1], numbers[-2]) for c, numbers in COUNTED.items()}


def listed(values, digits=2):
    """As `a, b and c`."""
    *most, last = (f"{value:.{digits}f}" for value in values)
    return f"{', '.join(most)} and {last}"


def tiles(m, n):
    """Of c."""
    assert m % (8 * ROWS) == n % COLUMNS == 0, "the last cluster would have less to do"
    return m // ROWS * (n // COLUMNS)


def waves(m, n, sms):
    """Of tiles, so many of them at once."""
    return -(-tiles(m, n) // sms)


def test_a_step_takes_the_port_and_shared_memory_as_long_and_the_products_less():
    """Prose against formula."""
    shared = (ROWS + COLUMNS) * TILE_K * 2 * 2 / model.SHARED  # written once, read once
    assert f"is {A >> 10} KB of a and {B >> 10} KB of b" in SAID
    assert f"takes {PORT} cycles for them, at {model.L2_PORT} bytes each" in SAID
    assert shared == PORT
    assert f"shared memory takes as long, the products {PRODUCTS}." in SAID
    assert PRODUCTS < PORT


def test_what_the_l2_reads_of_what_sms_get_is_the_share_of_a_and_a_clusters_part_of_b():
    """Prose against formula."""
    shares = [(A + B / cluster) / (A + B) for cluster in (2, 4, 8)]
    assert f"the L2 reads {listed(shares)} of what SMs get, where clusterDim is 2, 4 and 8" in SAID


@pytest.mark.parametrize("c", COUNTED)
def test_the_sectors_that_sms_got_are_those_of_all_steps(c):
    assert COUNTED[c][0] == round(tiles(*c) * (DEPTH // TILE_K) * (A + B) / SECTOR / 1e6, 2)


def test_what_is_said_of_the_table_is_in_it():
    assert len(COUNTED) == 4
    spared = [100 * (1 - baseline / got) for got, baseline, _ in BY_4.values()]
    assert f"spares the baseline {min(spared):.0f} to {max(spared):.0f} % of its reads" in SAID
    read, over = listed(by_4 / got for got, _, by_4 in BY_4.values()), listed(by_4 / baseline for _, baseline, by_4 in BY_4.values())
    assert f"With clusters of 4 the L2 reads {read} of what SMs get, and {over} of what it reads for the baseline." in SAID
    got, _, alone, *_ = COUNTED[1024, 1024]
    assert alone / got == pytest.approx(1, abs=0.01), "the L2 reads all"
    for _, baseline, *_, by_2, _, _ in COUNTED.values():
        assert by_2 / baseline == pytest.approx(1, abs=0.12), "clusters of 2 spare about what the coalescer does"


def test_the_claim_stands_between_what_was_counted_with_as_many_waves_and_the_baseline():
    (claim,) = [parse_claim(text, separates=True) for text in OPTIMIZED.proves if text.startswith("counter")]
    assert claim.measure.names[0] in SAID
    assert (claim.relation, claim.relative) == ("<", True)
    alike = [by_4 / baseline for c, (_, baseline, by_4) in BY_4.items() if waves(*c, FILLED) == waves(*c, model.SMS)]
    assert len(alike) == 3
    assert max(alike) < claim.bound - 0.05
    assert claim.bound < 1


def test_the_timed_shape_is_as_many_waves_for_clusters_of_4_as_for_the_baseline():
    """Prose against formula."""
    m, n, k, cluster = (SHAPE[name] for name in ("m", "n", "k", "clusterDim"))
    assert f"filled only {FILLED} of that H200's {model.SMS} SMs" in SAID
    assert (cluster, k) == (4, DEPTH)
    assert waves(m, n, FILLED) == waves(m, n, model.SMS) == 4
    assert tiles(m, n) == 4 * FILLED, "and none of them is idle in the last one"


def test_a_ratio_is_told_of_as_many_waves_as_there_are():
    """Prose against formula."""
    both = {size: (waves(*size, FILLED), waves(*size, model.SMS)) for size in (*COUNTED, (4096, 3840))}
    assert both == {(1024, 1024): (2, 1), (512, 1920): (1, 1), (1024, 1920): (2, 2), (2048, 1920): (4, 4), (4096, 3840): (16, 15)}
    assert "0.57x at 1024 x 1024, two waves for one, and to 0.94x at 4096 x 3840, 16 for 15" in SAID
    assert "0.95x in one, 512 x 1920, to 1.03x in two, 1024 x 1920, and in four to 1.01x, 2048 x 1920, and 1.04x, the timed c" in SAID


def test_the_ratio_expected_is_between_those_that_were_timed_and_follows_from_the_limit_of_a_port():
    """Prose against formula."""
    depth, clock = SHAPE["k"] // TILE_K, 1.75
    cycles = waves(SHAPE["m"], SHAPE["n"], FILLED) * depth * PORT
    limit = cycles / clock / 1000
    assert f"four waves of {depth} steps are {cycles // 1000} {cycles % 1000} cycles of a port, {limit:.0f} us at {clock} GHz" in SAID

    baseline, optimized, *warm = (
        float(us) for us in re.search(r"the timed c: (\S+) us and (\S+), and (\S+) and (\S+) where", SAID).groups()
    )
    expected = float(OPTIMIZED.expects.partition("x,")[0])
    assert f"{baseline / optimized:.2f}x, the timed c" in SAID
    assert baseline / optimized < expected < warm[0] / warm[1]
    assert baseline / limit == pytest.approx(expected, abs=0.01)
    assert f"{expected}x was written down after them" in SAID
    assert f"a port takes {PORT} cycles for the {(A + B) >> 10} KB of a step" in OPTIMIZED.expects


def test_a_third_of_the_baselines_reads_is_spared_where_tiles_are_as_many_as_the_timed():
    """Prose against formula."""
    assert tiles(2048, 1920) == tiles(SHAPE["m"], SHAPE["n"])
    got, baseline, _ = BY_4[2048, 1920]
    assert "an H200 joins a third of the baseline's reads" in OPTIMIZED.expects
    assert 1 - baseline / got == pytest.approx(1 / 3, abs=0.03)


def test_the_ring_fits():
    stages = int(re.search(r"Pipeline<1, COLUMNS, (\d+)>", SMALL.read_text())[1])
    assert stages * (A + B) == 192 << 10
    assert stages * (A + B) + ROWS * CONSTANTS["PANEL"] * 2 + 2048 <= 227 << 10
    said = SMALL.read_text().replace("\n// ", " ")
    assert f"read all of it once, {(A + B) >> 10} KB more, in {PRODUCTS} cycles" in said
    assert f"shared memory takes {PORT} for it" in said

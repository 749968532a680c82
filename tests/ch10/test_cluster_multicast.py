"""What multicast is expected to gain follows from the bytes of a step of small tiles, and what was counted is told without a slip.

That both sides are right, and not without one of their waits, is in test_matmul_pipeline.py.
"""

import re

import pytest

from common.python.child.sides.loader import load_workload
from common.python.pairs.claims import parse_claim
from common.python.pairs.directives import read_directives
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
LINE, SECTOR, DEPTH = 128, 32, 8192
FILLED = 120
"""SMs of the H200 on which sectors were counted that clusters of 4 or of 8 fill."""

TEXT = WORKLOAD.read_text()
SAID = re.sub(r"\s+", " ", TEXT)
SHAPES = load_workload(WORKLOAD).timed_shapes
SPLIT, WHOLE = (SHAPES[name] for name in ("split lines", "whole lines"))
ROW = re.compile(r"^ +(\d+) x (\d+) +([\d. ]+)$", re.MULTILINE)
COUNTED = {(int(m), int(n)): [float(number) for number in numbers.split()] for m, n, numbers in ROW.findall(TEXT)}
"""For every c, of millions of sectors: those that the SMs got, those read for the baseline, and for clusters of (1,) 2, 4 and 8."""

SWEPT = re.compile(r"^ +(?:clusterDim (\d)|baseline) +(\d+) +(\d+) +([\d.]+) +(\d+)(?: +([\d.]+)x \[([\d.]+), ([\d.]+)\])?$", re.MULTILINE)
SWEEP = {int(row[0] or 0): [float(number) for number in row[1:] if number] for row in SWEPT.findall(TEXT)}
"""Of the baseline, 0, and every clusterDim: requests of a step, us, GHz, cycles of a step, and the ratio with its interval."""

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


def starts(row_bytes):
    """Where rows of so many bytes begin in a line, of as many rows as there are such places."""
    return [row * row_bytes % LINE for row in range(LINE)]


def pieces(row_bytes, size, wanted=LINE):
    """Lines or sectors, of `size` bytes, in which `wanted` bytes of a row lie, on average over the rows."""
    touched = [(start + wanted - 1) // size - start // size + 1 for start in starts(row_bytes)]
    return sum(touched) / len(touched)


def requests(row_bytes, cluster):
    """Of a block in a step, one for each part of a line of its own tile of a and of its part of b."""
    return (ROWS + COLUMNS / cluster) * pieces(row_bytes, LINE)


def spaced(number):
    """As `16 368`."""
    return f"{number:,}".replace(",", " ")


def test_a_step_takes_the_port_and_shared_memory_as_long_and_the_products_less():
    """Prose against formula."""
    shared = (ROWS + COLUMNS) * TILE_K * 2 * 2 / model.SHARED  # written once, read once
    assert f"A step of a tile of {ROWS} x {COLUMNS} is {A >> 10} KB of a and {B >> 10} KB of b" in SAID
    assert f"takes {PORT} cycles for a step, at {model.L2_PORT} bytes each" in SAID
    assert shared == PORT
    assert f"shared memory takes as long, the products {PRODUCTS}." in SAID
    assert PRODUCTS < PORT


def test_what_the_l2_reads_of_what_sms_get_is_the_share_of_a_and_a_clusters_part_of_b():
    """Prose against formula."""
    shares = [(A + B / cluster) / (A + B) for cluster in (2, 4, 8)]
    assert f"the L2 then reads {listed(shares)} of what SMs get, where clusterDim is 2, 4 and 8" in SAID


def test_both_shapes_are_as_many_waves_for_clusters_of_4_as_for_the_baseline():
    """Prose against formula."""
    assert list(SHAPES.values()) == [SPLIT, WHOLE], "claims are proved at the first one"
    assert {**SPLIT, "k": DEPTH} == WHOLE
    m, n, cluster = (WHOLE[name] for name in ("m", "n", "clusterDim"))
    assert cluster == 4
    assert f"filled only {FILLED} of that H200's {model.SMS} SMs" in SAID
    assert waves(m, n, FILLED) == waves(m, n, model.SMS) == 4
    assert tiles(m, n) == 4 * FILLED, "and none of them is idle in the last one"


# --- split lines


def test_a_row_of_a_tile_lies_in_two_lines_and_every_other_one_in_five_sectors():
    """Prose against formula."""
    row = 2 * SPLIT["k"]
    inside = sum(start > 0 for start in starts(row)) * 8 // LINE
    assert f"Rows of {spaced(row)} bytes begin inside a line of {LINE} bytes {inside} times in 8." in SAID
    assert f"lies in {pieces(row, LINE)} lines and {pieces(row, SECTOR)} sectors of {SECTOR} bytes on average, not in 1 and 4" in SAID
    assert (pieces(2 * WHOLE["k"], LINE), pieces(2 * WHOLE["k"], SECTOR)) == (1, 4)


def test_the_requests_of_a_step_are_those_of_the_tile_of_a_and_of_a_part_of_b():
    """Prose against formula."""
    assert {cluster: row[0] for cluster, row in SWEEP.items()} == {
        cluster: requests(2 * SPLIT["k"], cluster or 1) for cluster in (0, 1, 2, 4, 8)
    }
    assert f"WHOLE LINES: {requests(2 * WHOLE['k'], 1):.0f} for a block that shares none" in SAID
    assert f"a step takes {SWEEP[4][0]:.0f} requests, not {SWEEP[0][0]:.0f};" in OPTIMIZED.expects


def test_the_ratios_of_the_sweep_are_those_of_its_times():
    baseline = SWEEP[0][1]
    for _, us, _, _, ratio, low, high in (SWEEP[cluster] for cluster in (1, 2, 4, 8)):
        assert low < ratio < high
        assert (baseline - 0.5) / (us + 0.5) < ratio < (baseline + 0.5) / (us - 0.5)
    assert f"it took {SPLIT['m']} x {SPLIT['n']} x {SPLIT['k']} on an H200" in SAID


def test_the_cycles_of_a_step_are_those_of_the_times_and_clocks_of_the_sweep():
    steps = waves(SPLIT["m"], SPLIT["n"], FILLED) * -(-SPLIT["k"] // TILE_K)
    for _, us, gigahertz, cycles, *_ in SWEEP.values():
        assert 1000 * us * gigahertz / steps == pytest.approx(cycles, rel=0.007)


def test_the_cycles_of_clusters_lie_on_a_line_of_two_a_request():
    """Prose against the sweep."""
    fixed, each = (float(cycles) for cycles in re.search(r"within 2 % of (\S+) cycles \+ (\S+) a request", SAID).groups())
    for cluster in (1, 2, 4, 8):
        count, _, _, cycles, *_ = SWEEP[cluster]
        assert fixed + each * count == pytest.approx(cycles, rel=0.02)
    assert LINE // model.L2_PORT == round(each) == 2
    assert "A whole line takes a port of 64 bytes two, " in SAID

    parts = 2 * requests(2 * SPLIT["k"], 1)
    whole = (ROWS + COLUMNS) * pieces(2 * SPLIT["k"], SECTOR) * SECTOR / model.L2_PORT
    assert f"all {SWEEP[1][0]:.0f} parts pass, whoever asked. There {parts:.0f} cycles would be more than clusters took" in SAID
    assert f"their bytes take {whole:.0f}." in SAID
    assert all(SWEEP[cluster][3] < parts for cluster in (2, 4, 8)), "so it is not there that a part takes two cycles"


def test_the_claim_stands_between_a_coalescer_that_joins_nothing_and_one_that_joins_as_much_as_of_whole_lines():
    """Prose against formula."""
    (claim,) = [parse_claim(text, separates=True) for text in OPTIMIZED.proves if text.startswith("counter")]
    assert claim.measure.names[0] in SAID
    assert (claim.relation, claim.relative) == ("<", True)
    row, (full, last) = 2 * SPLIT["k"], divmod(SPLIT["k"], TILE_K)
    sectors = full * pieces(row, SECTOR) + pieces(row, SECTOR, 2 * last)  # of a row
    got = tiles(SPLIT["m"], SPLIT["n"]) * (ROWS + COLUMNS) * sectors
    nothing = requests(row, 4) / requests(row, 1)
    assert (
        f"the L2 reads {got / 1e6:.1f} million sectors for the baseline, all that SMs get, and {nothing:.2f} of them for clusters of 4;"
        in SAID
    )
    counted, by_4 = (float(number) for number in re.search(r"Counted since: (\S+) million and (\S+), ", SAID).groups())
    assert f"Counted since: {counted} million and {by_4}, {by_4 / counted:.2f}." in SAID
    assert (1e6 * counted / got, by_4 / counted) == (pytest.approx(1, abs=0.01), pytest.approx(nothing, abs=0.05))
    _, _, as_whole = counted_at_the_timed_c()
    assert f"less than {claim.bound} is claimed. Joined as whole lines are, it would be {as_whole:.2f}." in SAID
    assert nothing + 0.05 < claim.bound < as_whole - 0.05
    alone_us, baseline_us = (
        int(us) for us in re.search(r"in (\d+) us of gpu__time_duration, and \S+ in (\d+) for the baseline", SAID).groups()
    )
    assert "as clusterDim 1 is faster than the baseline here and slower with whole lines" in SAID
    assert SWEEP[1][1] < SWEEP[0][1]
    assert alone_us > baseline_us


def test_the_ladder_gained_as_much_as_is_said_where_its_rows_split_lines_too():
    """Prose against the ladder's workload."""
    ladder = CHAPTER / "workload_matmul.py"
    gained, row = re.search(r"`clustered` gained (\S+)x over the step before it where rows are of (\d+) bytes", SAID).groups()
    assert f"clustered {gained}x, not" in ladder.read_text()
    assert int(row) == 2 * load_workload(ladder).timed_shapes["awkward"]["k"]
    assert (pieces(int(row), LINE), pieces(int(row), SECTOR)) == (1.875, 4.5)


def test_what_is_expected_at_either_shape_is_what_was_timed_before():
    baseline, optimized = (float(us) for us in re.search(r"the timed one, (\S+) us and (\S+) by events", SAID).groups())
    whole, split = f"{baseline / optimized:.2f}x", f"{SWEEP[4][4]:.2f}x"
    assert OPTIMIZED.expects.startswith(f"{split} at k = {SPLIT['k']}, timed before: ")
    assert f"; {whole} at {WHOLE['k']}: " in OPTIMIZED.expects
    assert f"and {split} was written down after them" in SAID
    assert f"and to {whole} at the timed one, {baseline} us" in SAID
    assert f"with whole lines the baseline takes {baseline} us" in SAID


# --- whole lines


def counted_at_the_timed_c():
    """Of the baseline and of clusterDim 1, in millions of sectors, and what clusters of 4 would read of the baseline's."""
    alone, baseline = (
        float(number) for number in re.search(r"At the timed c that was (\S+) million, .* and (\S+) in \d+ for the", SAID).groups()
    )
    return baseline, alone, 0.49 * sectors_got(WHOLE["m"], WHOLE["n"]) / baseline


def sectors_got(m, n):
    """By all SMs in all steps, in millions."""
    return tiles(m, n) * (DEPTH // TILE_K) * (A + B) / SECTOR / 1e6


@pytest.mark.parametrize("c", COUNTED)
def test_the_sectors_that_sms_got_are_those_of_all_steps(c):
    assert COUNTED[c][0] == round(sectors_got(*c), 2)


def test_what_is_said_of_the_table_is_in_it():
    assert len(COUNTED) == 4
    spared = [100 * (1 - baseline / got) for got, baseline, _ in BY_4.values()]
    assert f"spares the baseline {min(spared):.0f} to {max(spared):.0f} % of its reads" in SAID
    read = [by_4 / got for got, _, by_4 in BY_4.values()]
    assert f"With clusters of 4 it reads {listed(read)} of what SMs get" in SAID
    got, _, alone, *_ = COUNTED[1024, 1024]
    assert alone / got == pytest.approx(1, abs=0.01), "the L2 reads all"
    for _, baseline, *_, by_2, _, _ in COUNTED.values():
        assert by_2 / baseline == pytest.approx(1, abs=0.12), "clusters of 2 spare about what the coalescer does"


def test_what_is_said_of_the_timed_c_follows_from_its_counters_and_the_table():
    """Prose against formula."""
    baseline, alone, over = counted_at_the_timed_c()
    got = sectors_got(WHOLE["m"], WHOLE["n"])
    assert alone / got == pytest.approx(1, abs=0.01), "the L2 reads all"
    assert 0.31 < 1 - baseline / got < 0.43
    assert [by_4 / got for got, _, by_4 in BY_4.values()].count(pytest.approx(0.49, abs=0.005)) == 3
    assert f"so at the timed c some {0.49 * got:.1f} million, {over:.2f} of the baseline" in SAID


def test_a_ratio_is_told_of_as_many_waves_as_there_are():
    """Prose against formula."""
    both = {size: (waves(*size, FILLED), waves(*size, model.SMS)) for size in COUNTED}
    assert both == {(1024, 1024): (2, 1), (512, 1920): (1, 1), (1024, 1920): (2, 2), (2048, 1920): (4, 4)}
    assert "0.57x at 1024 x 1024, two waves for one. With as many waves they came to 0.95x, 1.03x and 1.01x at the other c" in SAID


def test_both_sides_are_at_the_limit_of_a_port_and_the_clock_makes_the_difference():
    """Prose against formula."""
    cycles = [int(count) for count in re.search(r"a step takes (\d+) cycles and (\d+), at", SAID).groups()]
    clocks = [float(clock) for clock in re.search(r"cycles and \d+, at (\S+) and (\S+) GHz", SAID).groups()]
    ratio = float(re.search(r"by the device's clock it is (\S+)x \[", SAID)[1])
    assert cycles[0] / cycles[1] * clocks[1] / clocks[0] == pytest.approx(ratio, rel=0.005)
    assert clocks[1] / clocks[0] > cycles[0] / cycles[1], "most of it"
    assert f"some {(A + B) / cycles[1]:.0f} bytes a cycle" in SAID


def test_the_ring_fits():
    stages = int(re.search(r"Pipeline<1, COLUMNS, (\d+)>", SMALL.read_text())[1])
    assert stages * (A + B) == 192 << 10
    assert stages * (A + B) + ROWS * CONSTANTS["PANEL"] * 2 + 2048 <= 227 << 10
    said = SMALL.read_text().replace("\n// ", " ")
    assert f"read all of it once, {(A + B) >> 10} KB more, in {PRODUCTS} cycles" in said
    assert f"shared memory takes {PORT} for it" in said

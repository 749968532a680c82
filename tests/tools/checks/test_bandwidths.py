"""A chapter's recorded bandwidths: its README and pictures are what the recordings say, and a recording that is none is named."""

import json
import re

import pytest

from common.python.errors import BenchmarkError
from tools.checks.bandwidths import bandwidths

KIB = 1024
TOOK = {"all_reduce": (40.0, 50.0, 4000.0), "one_shot_all_reduce": (10.0, 11.0, 8000.0), "two_shot_all_reduce": (20.0, 21.0, 5000.0)}
NCCL_TESTS = "{} 1 float sum -1 9.0 9.0 {busbw} 0 9.0 9.0 {busbw} 0\n"


def rows():
    for name, times in TOOK.items():
        for size, us in zip((4 * KIB, 64 * KIB, KIB**3), times, strict=True):
            busbw = size / us / 1e3
            yield {"collective": name, "bytes": size, "us": us, "busbw": busbw, "busbw_min": busbw / 2, "busbw_max": busbw * 1.1}


@pytest.fixture
def suite(tmp_path):
    """A chapter's folder with one recording, of two ranks."""
    about = {"ranks": 2, "backend": "NCCL", "device": "NVIDIA Test", "torch": "2.0", "nccl": "2.1", "calls": 5, "rounds": 3}
    (tmp_path / "bandwidth_2xtest.json").write_text(json.dumps(about | {"rows": list(rows())}))
    return tmp_path / "bandwidth_benchmark_suite_8gpu.py"


def test_the_table_has_a_time_for_each_size_and_the_shortest_all_reduce_is_bold(suite):
    text, _ = bandwidths(suite)
    assert text.startswith("2 ranks, NVIDIA Test; torch 2.0, NCCL 2.1; 3 rounds of 5 calls:\n\n![")
    assert "| 4 KiB | 40.0 | **10.0** | 20.0 |" in text
    assert "| 1 GiB | **4000** | 8000 | 5000 |" in text
    assert text.endswith("One shot at 64 KiB: 4.55x over NCCL called by this suite.")


def test_nccl_tests_figures_stand_beside_the_suites_own(suite):
    suite.with_name("bandwidth_2xtest_nccl_tests.txt").write_text(NCCL_TESTS.format(64 * KIB, busbw="2.97"))
    text, pictures = bandwidths(suite)
    assert "| 64 KiB | 50.0 | 22.1 | **11.0** | 21.0 |" in text
    assert "| 4 KiB | 40.0 |  | **10.0** | 20.0 |" in text
    assert text.endswith("4.55x over NCCL called by this suite and 2.01x over NCCL called by nccl-tests.")
    assert ">all-reduce, NCCL, called by nccl-tests</text>" in pictures[suite.with_name("bandwidth_2xtest.svg")]


def test_a_factor_is_the_same_length_anywhere_in_the_picture(suite):
    (picture,) = bandwidths(suite)[1].values()
    lines = [
        [tuple(map(float, point.split(","))) for point in points.split()] for points in re.findall(r'polyline points="([^"]+)"', picture)
    ]
    assert len(lines) == len(TOOK)
    (left, high), (middle, _), (right, _) = lines[0]
    assert (middle - left) / (right - left) == pytest.approx(4 / 18, abs=0.01)  # of 18 doublings
    faster, slower = lines[1][0][1] - high, lines[1][2][1] - lines[0][2][1]
    assert faster == pytest.approx(-2 * slower, abs=0.3)  # 4 times the bandwidth at the smallest size, half at the largest
    assert faster < 0  # up
    assert ">2 ranks, NVIDIA Test; torch 2.0, NCCL 2.1</text>" in picture
    below = max(y for line in lines for _, y in line)
    assert all(float(y) > below for y in re.findall(r'y="([\d.]+)">all-', picture))  # the legend covers no line


def test_without_a_recording_nothing_is_claimed(suite):
    suite.with_name("bandwidth_2xtest.json").unlink()
    assert bandwidths(suite) == ("Not measured yet.", {})


@pytest.mark.parametrize(
    ("text", "found"), [("[", "Expecting value"), ("{}", "found no 'rows'"), ('{"rows": [{}]}', "found no 'collective'")]
)
def test_a_recording_that_is_none_is_named(suite, text, found):
    suite.with_name("bandwidth_2xtest.json").write_text(text)
    with pytest.raises(BenchmarkError, match=rf"bandwidth_2xtest.json: {found}.*expected what the `--json` of {suite.name} writes"):
        bandwidths(suite)


def test_a_table_of_something_else_is_named(suite):
    suite.with_name("bandwidth_2xtest_nccl_tests.txt").write_text("nothing\n")
    with pytest.raises(
        BenchmarkError,
        match=r"bandwidth_2xtest_nccl_tests.txt: found no row of 13 columns; expected the table that all_reduce_perf of nccl-tests prints$",
    ):
        bandwidths(suite)

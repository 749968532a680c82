"""What is said of a disk's pace: bytes of the whole file over the time of its reads, and nothing of a file that says nothing."""

import itertools

from common import disk_pace


def test_the_pace_is_that_of_the_whole_file(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_bytes(bytes(9 << 20))  # two requests and a part of one
    seconds = itertools.count(0, 0.5)
    monkeypatch.setattr(disk_pace.time, "perf_counter", lambda: next(seconds))
    metric = disk_pace.disk(file)["disk"]
    assert (metric.value, metric.unit, metric.better) == ((9 << 20) / 0.5 * 1e-9, "GB/s", "higher")


def test_a_small_file_says_nothing_of_a_pace(tmp_path):
    file = tmp_path / "file"
    file.write_bytes(bytes(1000))
    assert disk_pace.disk(file) == {}

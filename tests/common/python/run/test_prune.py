"""prune removes old runs and builds, and nothing that was measured of a machine."""

import os
import time

import pytest

from common.python.run.prune import prune


@pytest.fixture
def folders(tmp_path):
    artifacts, cache = tmp_path / "artifacts", tmp_path / "cache"
    for name in ("20250101_000000", "20250102_000000_2", "20250103_000000", "machines", "mine", "peak_x"):
        (artifacts / name).mkdir(parents=True)
        (artifacts / name / "run.json").write_text("{}")
    (cache / "build").mkdir(parents=True)
    for name in ("old.so", "new.so"):
        (cache / "build" / name).write_text("x" * 10)
    then = time.time() - 40 * 86400
    for path in tmp_path.rglob("*"):
        if path.name != "new.so":
            os.utime(path, (then, then))
    return artifacts, cache


def test_old_runs_and_builds_go_and_the_rest_stays(folders):
    artifacts, cache = folders
    found = prune(artifacts, cache, keep=1, days=30, dry_run=True)
    assert [path.name for path in found.paths] == ["20250102_000000_2", "20250101_000000", "old.so"]
    assert found.size == 14
    assert len(list(artifacts.iterdir())) == 6
    assert prune(artifacts, cache, keep=1, days=30) == found
    assert sorted(path.name for path in artifacts.iterdir()) == ["20250103_000000", "machines", "mine", "peak_x"]
    assert [path.name for path in (cache / "build").iterdir()] == ["new.so"]


def test_what_is_young_stays(folders):
    assert prune(*folders, keep=0, days=50).paths == ()
    assert prune(folders[0] / "nowhere", folders[1] / "nowhere", keep=0, days=0).paths == ()

"""Which pairs the stages of labs/fullstack_cluster:09_end_to_end are, and that all of them exist."""

import pytest

from common.python.pairs.discovery import discover
from common.python.project import PROJECT_ROOT
from tests.support.chapters import modules_of


@pytest.fixture
def lab(monkeypatch):
    """The lab's modules can be imported, and are forgotten afterwards."""
    with modules_of(PROJECT_ROOT / "labs/fullstack_cluster", monkeypatch):
        yield


def test_stages_are_pairs_of_chapter_20(lab):
    from scenario_benchmark import targets_of

    known = {pair.target for pair in discover(PROJECT_ROOT).pairs}
    assert known.issuperset(targets_of(None))
    assert targets_of("cache") == ["ch20:integrated_kv_cache"]


def test_names_are_split_by_stage(lab):
    from shared_chapter20 import merged, of

    named = merged({"cache": {"q": 1}, "stream": {"x": 2}})
    assert named == {"cache_q": 1, "stream_x": 2}
    assert of("cache", named) == {"q": 1}

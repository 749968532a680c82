"""The plan by which rows are accepted covers every row that is, and names no other targets than there are."""

import shlex

import pytest

from common.python.child.sides.loader import load_workload
from common.python.gate.expectations import read_expectations
from common.python.pairs.discovery import discover
from common.python.project import PROJECT_ROOT
from tools.campaign.plan import ALONE, read_plan

PLANS = sorted((PROJECT_ROOT / "tools/campaign").glob("accept_*.plan"))


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_each_accepted_row_has_a_line(path):
    key = path.stem.removeprefix("accept_")
    runs = [words for task in read_plan(path) if (words := shlex.split(task.words))[0] == "run"]
    planned = [words[words.index("-t") + 1] for words in runs]
    files = PROJECT_ROOT.glob(f"ch*/expectations_{key}.json")
    accepted = {f"{file.parent.name}:{pair}" for file in files for pair in read_expectations(file).pairs}

    assert len(set(planned)) == len(planned)
    assert set(planned) <= {pair.target for pair in discover(PROJECT_ROOT).pairs}
    assert accepted <= set(planned)
    assert all("--accept-regressions" in words for words in runs)


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_what_the_host_decides_is_measured_alone(path):
    pairs = {pair.target: pair for pair in discover(PROJECT_ROOT).pairs}
    for task in read_plan(path):
        words = shlex.split(task.words)
        if words[0] == "run":
            clock = load_workload(pairs[words[words.index("-t") + 1]].workload).clock
            assert (task.how == ALONE) == (clock != "device"), task


def test_there_is_one():
    assert PLANS

"""The plan by which rows are accepted covers every row that is, and names no other targets than there are."""

import shlex

import pytest

from common.python.child.sides.loader import load_workload
from common.python.gate.expectations import read_expectations
from common.python.pairs.directives import read_directives
from common.python.pairs.discovery import discover
from common.python.project import PROJECT_ROOT
from tools.campaign.plan import ALL, ALONE, read_plan

ACCEPTING = {"--accept", "--accept-regressions"}
PLANS = sorted((PROJECT_ROOT / "tools/campaign").glob("accept_*.plan"))


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_each_accepted_row_has_a_line(path):
    key = path.stem.removeprefix("accept_")
    runs = [words for task in read_plan(path) if (words := shlex.split(task.words))[0] == "run"]
    planned = [target for words in runs if ACCEPTING & set(words) for target in targets_of(words)]
    files = PROJECT_ROOT.glob(f"**/expectations_{key}.json")
    folders = {file.parent.relative_to(PROJECT_ROOT): read_expectations(file).pairs for file in files if "artifacts" not in file.parts}
    accepted = {f"{folder.as_posix()}:{pair}" for folder, pairs in folders.items() for pair in pairs}

    assert len(set(planned)) == len(planned)
    assert set(planned) <= {pair.target for pair in discover(PROJECT_ROOT).pairs}
    assert accepted <= set(planned)
    assert {target for words in runs for target in targets_of(words)} == set(planned)  # what is only gated here is accepted there


@pytest.mark.parametrize("path", PLANS, ids=lambda path: path.stem)
def test_what_disk_and_host_memory_decide_is_measured_alone_and_ranks_on_all_gpus(path):
    pairs = {pair.target: pair for pair in discover(PROJECT_ROOT).pairs}
    for task in read_plan(path):
        words = shlex.split(task.words)
        for target in targets_of(words) if words[0] == "run" else ():
            workload = load_workload(pairs[target].workload)
            several = workload.ranks or "gpus 2" in read_directives(pairs[target].workload).needs
            expected = {ALL} if several else {ALONE} if workload.clock == "host" else {"", ALONE}  # alone: more care than is needed
            assert task.how in expected, task


def targets_of(words):
    return [words[place + 1] for place, word in enumerate(words) if word == "-t"]


def test_there_is_one():
    assert PLANS

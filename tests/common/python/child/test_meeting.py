"""Ranks that meet in shared memory: all learn what all say, go on within a moment of each other, and one that does not come is named."""

import multiprocessing
import statistics
import time

import pytest

from common.python.child import meeting
from common.python.child.meeting import Meeting
from common.python.errors import BenchmarkError

MEETINGS = 200


def flags_of(rank):
    """What a rank says at each meeting: no two the same."""
    return [bool((number * 7 + 3) >> rank & 1) for number in range(MEETINGS)]


def meet_often(path, rank, ranks, found):
    here = Meeting(path, rank, ranks)
    for flag in flags_of(rank):
        said = here.meet(flag)
        found.put((rank, said, time.perf_counter_ns()))


def met(path, ranks):
    """By rank, what each learnt at every meeting, and when it went on."""
    processes = multiprocessing.get_context("spawn")
    found = processes.Queue()
    started = [processes.Process(target=meet_often, args=(path, rank, ranks, found)) for rank in range(ranks)]
    for process in started:
        process.start()
    answers = {rank: [] for rank in range(ranks)}
    for _ in range(ranks * MEETINGS):
        rank, said, at = found.get(timeout=60)
        answers[rank].append((said, at))
    for process in started:
        process.join()
    return answers


@pytest.mark.parametrize("ranks", [2, 4])
def test_every_rank_learns_at_every_meeting_what_each_says(tmp_path, ranks):
    answers = met(str(tmp_path / "page"), ranks)

    expected = [list(said) for said in zip(*map(flags_of, range(ranks)), strict=True)]
    assert [[said for said, _ in answers[rank]] for rank in range(ranks)] == [expected] * ranks


@pytest.mark.alone
def test_two_ranks_go_on_within_a_moment_of_each_other(tmp_path):
    answers = met(str(tmp_path / "page"), 2)

    apart = [abs(mine - other) for (_, mine), (_, other) in zip(answers[0], answers[1], strict=True)]
    assert statistics.median(apart) < 200_000  # a few thousand, where each has a core


def test_whoever_opens_the_gate_opens_it_for_all(tmp_path):
    first, second = (Meeting(str(tmp_path / "page"), rank, 2) for rank in range(2))
    assert (first.gate.value, second.gate.value) == (0, 0)
    second.gate.value = 1
    assert first.gate.value == 1


def test_nobody_goes_on_alone_and_who_does_not_come_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(meeting, "_PATIENCE_S", 0.05)
    first = Meeting(str(tmp_path / "page"), 0, 2)
    Meeting(str(tmp_path / "page"), 1, 2)

    with pytest.raises(BenchmarkError, match="rank 1 did not come to meet rank 0"):
        first.meet()

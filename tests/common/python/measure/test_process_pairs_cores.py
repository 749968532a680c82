"""A host-bound step is timed on the core that works fastest, and looking for it leaves no trace."""

import os

from common.python.measure import process_pairs as cores


def test_the_core_that_does_most_is_taken_and_the_thread_may_go_where_it_could(monkeypatch):
    allowed = os.sched_getaffinity(0)
    work = dict.fromkeys(allowed, 10) | {min(allowed): 5, max(allowed): 11}
    tried = []

    def work_on(core):
        tried.append(core)
        return work[core]

    monkeypatch.setattr(cores, "_work_on", work_on)
    monkeypatch.setattr(cores, "_MOST", len(allowed))
    assert cores.fastest_core(sorted(allowed)) == max(allowed)
    assert tried == sorted(allowed)
    assert os.sched_getaffinity(0) == allowed


def test_a_trial_runs_on_its_core_alone_and_does_something():
    allowed = os.sched_getaffinity(0)
    try:
        assert cores._work_on(max(allowed)) > 0
        assert os.sched_getaffinity(0) == {max(allowed)}
    finally:
        os.sched_setaffinity(0, allowed)
    assert cores.fastest_core(sorted(allowed)) in allowed
    assert os.sched_getaffinity(0) == allowed


def test_on_a_large_machine_only_some_are_tried(monkeypatch):
    tried = []
    monkeypatch.setattr(cores.os, "sched_getaffinity", lambda _: set(range(96)))
    monkeypatch.setattr(cores.os, "sched_setaffinity", lambda *_: None)
    monkeypatch.setattr(cores, "_work_on", lambda core: tried.append(core) or core)
    assert cores.fastest_core(range(96)) == 90
    assert tried == list(range(0, 96, 6))

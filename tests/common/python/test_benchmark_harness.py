"""The recipe's order: which sides are asked together, and what a row that ends early leaves behind."""

import os
import re
from types import SimpleNamespace

import pytest

from common.python import benchmark_harness as harness
from common.python.errors import SideFailure, Status
from common.python.processes import messages
from common.python.session.session import Judging
from tests.support.commands import run_here, write_pair
from tests.support.factories import a_row
from tests.support.plans import H200, a_plan
from tests.support.profiled import a_pair, a_session
from tests.support.synthetic_ceilings import RATES, synthetic_ceilings


class Side:
    """Tells `log` what it is asked, and fails when it is checked at `fails_at`."""

    load_s = 0.0

    def __init__(self, name, log, fails_at=None):
        self._name, self._log, self._fails_at, self._shape = name, log, fails_at, None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._log.append((self._name, "gone"))

    def begin_load(self):
        self._log.append((self._name, "load"))

    def finish_load(self):
        self._log.append((self._name, "loaded"))

    def begin_prepare(self, shape, *_):
        self._shape = shape["n"]
        self._log.append((self._name, f"prepare {self._shape}"))

    def finish_prepare(self):
        self._log.append((self._name, f"prepared {self._shape}"))
        return messages.Prepared(nonce="", seconds=1.0)

    def begin(self, request):
        self._log.append((self._name, f"check {self._shape}"))

    def finish(self, expected, seconds):
        self._log.append((self._name, f"checked {self._shape}"))
        if self._shape == self._fails_at:
            raise SideFailure(Status.WRONG_RESULT, f"{self._name} at {self._shape}")
        return messages.Checked(nonce="", calls=[], first_call_s=2.0)

    def begin_close(self):
        self._log.append((self._name, "close"))


@pytest.fixture
def verified(tmp_path):
    """What two sides are asked on a device, at the small shapes 1 and 2 and then at 9."""

    def verify(device, compiling="", **fails_at):
        log = []
        plan = SimpleNamespace(
            sides=("baseline", "optimized"),
            device=device,
            ranks=1,
            described=SimpleNamespace(check_at=({"n": 1}, {"n": 2})),
            timed={"default": {"n": 9}},
            file=lambda side: tmp_path / f"{side}.py",
        )
        for side in plan.sides:
            plan.file(side).write_text("f = torch.compile(abs)\n" if side in compiling else "f = abs\n")
        session = a_session(tmp_path / "run")
        session.dump_prefix = lambda: ""
        session.tell = verify.said.append
        session.fork_side = lambda _, side: Side(side, log, fails_at.get(side))
        row = verify.row = harness._Row(plan, checks={side: [] for side in plan.sides})
        try:
            harness.verify(row, session, judging=SimpleNamespace(judge=lambda *_, timed: [], require_reference=lambda *_: None))
        except SideFailure as failure:
            return log, failure.reason
        return log, row.setups

    verify.said = []
    return verify


def test_on_a_gpu_sides_are_verified_side_by_side_at_small_shapes_and_alone_where_they_are_timed(verified):
    log, setups = verified("cuda")
    assert log[4:8] == [("baseline", "prepare 1"), ("optimized", "prepare 1"), ("baseline", "prepared 1"), ("optimized", "prepared 1")]
    assert log[8:12] == [("baseline", "check 1"), ("optimized", "check 1"), ("baseline", "checked 1"), ("optimized", "checked 1")]
    alone = ["prepare 9", "prepared 9", "check 9", "checked 9", "close"]
    assert log[20:30] == [("baseline", what) for what in alone] + [("optimized", what) for what in alone]
    assert [(setup.prepare_s, setup.first_call_s) for setup in setups.values()] == [(1.0, 2.0), (1.0, 2.0)]


def test_each_step_of_verifying_is_told_once_with_its_shape(verified):
    verified("cpu")
    assert verified.said == [f"verifying {side} at n={n}" for side in ("baseline", "optimized") for n in (1, 2, 9)]


def test_a_row_of_another_shape_says_so_and_that_it_is_not_gated(tmp_path):
    root = write_pair(tmp_path / "root")
    told = "timed at n=64, by --kwargs: not the pair's own shape, so not gated"
    (row,) = run_here(root, tmp_path / "run", iterations=1, warmup=0, kwargs={"n": "64"}).rows
    assert told in row.notes
    (row,) = run_here(root, tmp_path / "verified", command="verify", kwargs={"n": "64"}).rows
    assert told not in row.notes


@pytest.mark.parametrize(
    ("compiling", "device", "seconds"),
    [("", "cuda", 0.0), ("optimized", "cuda", 9.0), ("baseline optimized", "cuda", 12.0), ("baseline optimized", "cpu", 18.0)],
)
def test_seconds_of_first_compilation_are_those_of_compiling_sides_side_by_side_once(verified, compiling, device, seconds):
    verified(device, compiling)  # 3 s a side and shape: two shapes side by side on a GPU, one alone
    assert verified.row.compiled_s == seconds


def test_on_a_cpu_a_side_is_verified_and_gone_before_the_next_begins(verified):
    log, _ = verified("cpu")
    asked = [(side, what) for side, what in log if what.startswith(("prepare ", "close"))]
    assert asked == [(side, what) for side in ("baseline", "optimized") for what in ("prepare 1", "prepare 2", "prepare 9", "close")]


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_a_wrong_side_ends_it_and_no_side_is_left(verified, device):
    log, reason = verified(device, optimized=2)
    assert reason == "optimized at 2"
    assert [side for side, what in log if what == "gone"] == ["optimized", "baseline"]
    assert ("optimized", "prepare 9") not in log


def test_a_referee_that_nothing_was_asked_of_is_gone_without_a_word(tmp_path, server):
    session = a_session(tmp_path / "run")
    session.server = server
    with Judging(session, a_pair(tmp_path)) as judging:
        (pid,) = (child.pid for child in judging._children)
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.fixture
def predicting(tmp_path):
    """A row of a pair that predicts what a test gives, with what became of its predictions under the settings that the test chooses."""

    def row_of(line, changes=None, **choices):
        plan = a_plan(tmp_path, **(changes or {}))
        plan.selection.pair.workload.write_text('"""Workload."""\n')
        for side, path in plan.selection.pair.sides.items():
            path.write_text(f'"""{side}."""\n# {line}\n' if side == "optimized" else '"""Baseline."""\n')
        session = a_session(tmp_path / "run", **choices)
        session.ceilings = {"cuda": synthetic_ceilings()}
        return harness.with_predictions(a_row(), plan, session)

    return row_of


def test_a_row_holds_its_predictions_beside_what_was_measured(predicting):
    (term,) = predicting("predicts: optimized 18.4 us = 18.4e-6").predictions["default"]
    assert (term.subject, term.missed, term.measured) == ("optimized", True, pytest.approx(36.7e-6))


def test_a_model_without_a_card_is_held_to_this_machine_s_own_ceilings(predicting):
    gpus = (H200.model_copy(update={"name": "NVIDIA Test"}),)
    (term,) = predicting("predicts: optimized 0.952 ns = n * 4 / dram_copy", {"gpus": gpus}).predictions["default"]
    assert term.predicted == pytest.approx(1024 * 4 / RATES["dram_copy"])


@pytest.mark.parametrize("choices", [{"kwargs": {"n": "8"}}, {"sweep": {"n": ("8", "16")}}, {"cold_start": True}, {"against": "HEAD"}])
def test_a_row_that_is_another_question_is_held_to_no_prediction(predicting, choices):
    assert predicting("predicts: optimized 18.4 us = 18.4e-6", **choices).predictions == {}


def test_a_row_on_a_cpu_is_held_to_no_prediction(predicting):
    assert predicting("predicts: optimized 18.4 us = 18.4e-6", {"device": "cpu"}).predictions == {}


def test_a_line_that_is_wrong_costs_a_row_nothing_but_its_predictions(predicting):
    row = predicting("predicts: optimized 18.4 us = n / dram_latency")
    assert (row.status, row.predictions, len(row.timings)) == (Status.PASSED, {}, 1)
    assert "found 'dram_latency' in `n / dram_latency`" in row.notes[0]


@pytest.mark.parametrize(
    ("sides", "idea"),
    [
        (("baseline", "optimized"), "of optimized"),
        (("baseline", "optimized", "library"), "of optimized"),
        (("optimized",), "of optimized"),
        (("baseline", "tiled", "walk", "optimized", "library"), "a ladder of 3 steps; the last: of optimized"),
    ],
)
def test_a_rows_idea_does_not_credit_one_step_of_a_ladder_with_all_of_its_gain(sides, idea):
    plan = SimpleNamespace(sides=sides, side_directives={side: SimpleNamespace(idea=f"of {side}") for side in sides})
    assert harness.idea_of(plan) == idea


ALLOCATES = """
import torch
from torch.profiler import profile


def prepare(x):
    calls = []

    def step():
        calls.append(1)
        WORK
        return x * 2

    return step
"""
TOLD = "each step allocates memory anew: optimized 5. times, 19. KiB; `allows: alloc` says that this is the idea"


@pytest.mark.parametrize(
    ("baseline", "optimized", "told"),
    [
        ("pass", "[torch.empty(1000) for _ in range(50)]", [TOLD]),
        ("pass", "pass", []),
        ("[torch.empty(1000) for _ in range(50)]", "[torch.empty(1000) for _ in range(50)]", []),
        ("pass", "with profile(): [torch.empty(1000) for _ in range(50)]", []),
        ("pass", "if len(calls) == 3: raise ValueError('in the call that is counted')", []),
    ],
)
def test_a_side_that_allocates_in_its_steps_gets_a_note_on_a_cpu_and_never_fails_for_it(tmp_path, baseline, optimized, told):
    sides = {
        side: f'"""A {side}."""\n{ALLOCATES.replace("WORK", work)}' for side, work in (("baseline", baseline), ("optimized", optimized))
    }
    (row,) = run_here(write_pair(tmp_path / "root", **sides), tmp_path / "run", command="verify").rows
    assert (row.status, row.reason) == (Status.PASSED, "")
    found = [note for note in row.notes if "allocates" in note]
    assert len(found) == len(told)
    assert all(re.fullmatch(pattern, note) for pattern, note in zip(told, found, strict=True))


def test_a_side_that_says_so_may_allocate(tmp_path):
    side = f'"""A side."""\n# allows: alloc\n{ALLOCATES.replace("WORK", "[torch.empty(1000) for _ in range(50)]")}'
    (row,) = run_here(write_pair(tmp_path / "root", optimized=side), tmp_path / "run", command="verify").rows
    assert (row.status, row.notes) == (Status.PASSED, ())

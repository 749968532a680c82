"""What torch.compile did to a side is told with its number and its first cause; a side that it compiled whole and once is not spoken of."""

import logging
import sys
from types import SimpleNamespace

import pytest

from common.python.child.sides.compiled import Compiler
from common.python.processes import messages
from common.python.results import CompilerFinding
from tests.support.commands import loaded_worker, shared_server

SIDE = '''"""Baseline: compiled in the way that the length says."""

import torch


def compiled(function):
    return torch.compile(function, backend="eager", dynamic=False)


@compiled
def whole(x):
    return 2 * x


@compiled
def broken(x):
    print("breaks a graph")
    return x + x


@compiled
def left(x):
    for _ in range(2):
        print("in a loop")
    return x + x


@compiled
def of_any_length(x):
    return x.sin()


def several(x, count):
    for length in range(2, 2 + count):
        of_any_length(torch.ones(length))
    return x * 2


def doubled(factor):
    def closure(x):
        return factor * x

    return compiled(closure)


STEPS = {3: whole, 4: broken, 5: left, 6: lambda x: several(x, 4), 7: lambda x: several(x, 12)}


def prepare(x, n):
    step = STEPS[n] if n in STEPS else doubled(2.0 if n == 8 else torch.tensor(2.0))
    return lambda: step(x)
'''
PRINT = "(Failed to trace builtin operator)"
SIZES = "(tensor 'x' size mismatch at index 0. expected {}, actual {})"


def at(text):
    """The place of the side's line of `text`."""
    return f"baseline_double.py:{next(i for i, line in enumerate(SIDE.splitlines(), 1) if text in line)}"


LEFT = f"left in baseline_double.py:{int(at('def left').rpartition(':')[2]) - 1}"
SEVERAL = f"of_any_length in baseline_double.py:{int(at('def of_any').rpartition(':')[2]) - 1}"
TOLD = {
    3: [],
    4: [("broken", 1, f"{at('breaks a graph')} {PRINT}")],
    5: [("left", 1, f"{LEFT} {PRINT}")],
    6: [("again", 3, f"{SEVERAL} {SIZES.format(2, 3)}")],
    7: [("again", 7, f"{SEVERAL} {SIZES.format(2, 3)}"), ("limit", 1, f"{SEVERAL} {SIZES.format(9, 10)}")],
    8: [],
}


def test_findings_are_of_the_shape_that_a_side_was_prepared_at_last(tmp_path):
    child, _ = loaded_worker(shared_server(), tmp_path, SIDE)
    with child:
        for n, told in [*TOLD.items(), (3, [])]:
            child.ask(messages.Prepare(shape={"n": n}, seed=1, live_seed=2), messages.Prepared, 60)
            for _ in range(2):  # what is compiled already is told again, as each answer tells all
                checked = child.ask(messages.Check(seeds=[2, 3], prefix=str(tmp_path / "dump")), messages.Checked, 60)
                assert [(each.kind, each.count, each.first) for each in checked.compiler] == told, n


def test_a_side_that_is_prepared_again_at_its_shape_and_for_that_compiled_again_is_not_spoken_of(tmp_path):
    child, _ = loaded_worker(shared_server(), tmp_path, SIDE)
    with child:
        for _ in range(3):
            child.ask(messages.Prepare(shape={"n": 9}, seed=1, live_seed=2), messages.Prepared, 60)
            checked = child.ask(messages.Check(seeds=[2, 3], prefix=str(tmp_path / "dump")), messages.Checked, 60)
            assert checked.compiler == []


class Extern:
    """Stands in for PyTorch's own kernel."""


class Generated:
    """Stands in for one that was generated."""


@pytest.fixture
def selector(monkeypatch):
    savers = []
    module = SimpleNamespace(ExternKernelCaller=Extern, add_feedback_saver=savers.append, savers=savers)
    monkeypatch.setitem(sys.modules, "torch._inductor.select_algorithm", module)
    monkeypatch.delitem(sys.modules, "torch._dynamo.utils", raising=False)
    logger = logging.getLogger("torch._inductor.select_algorithm")
    monkeypatch.setattr(logger, "handlers", [])
    monkeypatch.setattr(logger, "propagate", False)
    return SimpleNamespace(savers=savers, log=logger)


REFUSED = "Runtime error during autotuning: \nout of resource: shared memory, Required: 9, Hardware limit: 8. \nIgnoring this choice."
INF = float("inf")


@pytest.mark.parametrize(
    ("failures", "timings", "told"),
    [
        (0, {Extern(): 1.0, Generated(): 2.0}, []),
        (1, {Extern(): 1.0, Generated(): 2.0, Generated(): INF}, []),  # one candidate is left
        (2, {Extern(): 1.0, Generated(): INF, Generated(): INF}, ["mm, as none of its 2 candidates ran (out of resource: "]),
        (1, {Extern(): 1.0}, ["mm, as none of its one candidate ran (out of resource: "]),  # it could not be compiled
        (0, {Extern(): 1.0}, []),  # there was none
    ],
)
def test_an_autotuning_failed_if_none_of_its_candidates_ran(selector, failures, timings, told):
    compiler = Compiler()
    compiler.begin()
    for _ in range(failures):
        selector.log.error(REFUSED)
    for saver in selector.savers:
        saver(timings, "mm", [], list(timings), None, {})
    found = compiler.findings()
    assert [(each.kind, each.count) for each in found] == [("untuned", 1)] * len(told)
    assert [each.first for each in found] == [f"{start}shared memory, Required: 9, Hardware limit: 8)" for start in told]
    compiler.begin()
    assert compiler.findings() == []


def test_each_failed_autotuning_counts_and_a_later_one_is_not_blamed_for_the_first(selector):
    compiler = Compiler()
    for name in ("mm", "bmm"):
        selector.log.warning("out of room")
        selector.savers[0]({Extern(): 1.0, Generated(): INF}, name, [], [], None)  # with as many arguments as an earlier PyTorch gives
    selector.savers[0]({Extern(): 1.0}, "addmm", [], [], None)
    assert len(selector.savers) == 1
    first = "mm, as none of its one candidate ran (out of room)"
    assert compiler.findings() == [CompilerFinding(kind="untuned", count=2, first=first)]

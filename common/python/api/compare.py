"""`compare` two functions, or `measure` one: from a notebook, a script or a test, by the harness that times pairs."""

from __future__ import annotations

import difflib
import math
import secrets
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

import torch

from common.python.api.as_pair import PAIR, TARGET, Noted, Replaced, without_name, write_pair
from common.python.api.functions import Question, label_of
from common.python.api.one_process import floor_percent, time_here, untimed, widened
from common.python.api.result import Result, Speedup
from common.python.errors import BenchmarkError, ExitCode, SideFailure, Status
from common.python.gate.noise_floor import class_of_units
from common.python.gate.statistics import speedups_of, times_of
from common.python.machine.description import cpu_model, describe_machine, lock
from common.python.pairs.discovery import discover
from common.python.pairs.targets import select
from common.python.pairs.workload import Cache, Clock, ReferenceIn, Shape, Workload
from common.python.project import PROJECT_ROOT, default_root
from common.python.results import BASELINE, OPTIMIZED, PairResult, PairTiming, Run
from common.python.run.suite import run_suite
from common.python.settings import Device, Settings

Function = Callable[..., Any]
_SIDES = (BASELINE, OPTIMIZED)
_WAIT_S = 600.0
_GATE = 0.5


class NotMeasured(BenchmarkError):
    """A function that is wrong, or could not be timed, and so has no time: `status` is that of a row, `reason` one sentence."""

    def __init__(self, status: Status, reason: str) -> None:
        super().__init__(f"{status}: {reason}")
        self.status = status
        self.reason = reason


@dataclass(frozen=True)
class _Functions:
    """Functions that were written down as a pair: what they are called, what a process found out about them, what checks do not cover."""

    names: tuple[str, ...]
    noted: Noted
    caveats: tuple[str, ...]


class _Silent:
    """Watches a run that nobody reads; keeps its notes."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, sentence: str) -> None:
        self.notes.append(sentence)

    def started(self, target: str, index: int, total: int) -> None:
        """Nothing is told of a row that begins."""

    def phase(self, target: str, text: str) -> None:
        """Nothing is told of a row at work."""

    def finished(self, row: PairResult) -> None:
        """Nothing is told of a row that is done."""


class Stated(TypedDict, total=False):
    """What a question may state of its work; see `compare`."""

    inputs: Any
    reference: Function
    work: Mapping[str, float] | Function
    rtol: float
    atol: float
    shape: Shape
    clock: Clock
    cache: Cache
    constants: Sequence[str]
    in_place: Sequence[str]
    reference_in: ReferenceIn


class Choices(Stated, total=False):
    """What a question may choose of its measurement; see `compare`."""

    names: Sequence[str]
    device: Literal["auto", "cuda", "cpu"]
    gate: float
    root: Path | str
    wait: float


def compare(f: Function | str, g: Function | None = None, **choices: Unpack[Choices]) -> Result:
    """How many times faster `g` is than `f`, once both have given the right answer on two seeds; or, of a target such as `ch07:transpose`.

    inputs      a function of `rand` and the entries of `shape` that draws named tensors, so that each call gets new values; or a dict, a
                sequence or one tensor, which are then the same in each call; or a `Workload`, which states the rest too
    reference   the obvious slow answer, in float64; without one it is `f`, called in float64
    work        the least any implementation must do, by ceiling, as in a workload: {"dram_read": bytes}, or a function of the shape
    rtol, atol  |x - y| <= atol + rtol |y|; default: those of torch.testing.assert_close for the outputs' dtype
    names       what the functions are called in the result, as ("eager", "compiled"); default: their own names
    gate        percent of change that counts as none; default: 0.5
    device      auto, cuda or cpu; on a CPU torch has one thread
    root        the folder of a target; default: this checkout, or the working directory
    wait        seconds to wait for another run that has the machine; default: 600

    A target states its own work, and takes only `gate`, `device`, `root` and `wait`. The first timed shape of a pair is the result.

    `shape`, `clock`, `cache`, `constants`, `in_place` and `reference_in` are a workload's. Functions that can be imported by name run in
    fresh processes, as sides do; lambdas and notebook cells in this one, which the result says, with a wider interval and a wider band.
    An object with another's name, as `torch.compile(f)`, is imported by the name of the module's attribute that holds it.
    Raises NotMeasured for a function that is wrong, fails or runs in Triton's interpreter, BenchmarkError for a question that
    cannot be put, UnfitEnvironment.
    """
    __tracebackhide__ = True
    try:
        return _compared(f, g, choices)
    except BenchmarkError as error:
        raise error.with_traceback(None) from None  # its sentence says all of it, and where in the harness it was found says nothing


def measure(f: Function | str, **choices: Unpack[Choices]) -> Result:
    """Time `f`, after checking that its answers are right on two seeds; or one side of a target, as `ch07:transpose_optimized`, or both.

    Takes the keyword arguments of `compare`, and raises what `compare` raises.
    """
    __tracebackhide__ = True
    try:
        return _measured(f, choices)
    except BenchmarkError as error:
        raise error.with_traceback(None) from None


def _compared(f: Function | str, g: Function | None, choices: Choices) -> Result:
    if isinstance(f, str):
        if g is not None:
            raise BenchmarkError(f"compare({f!r}, {_spelt(g)}): found a target and more; expected a target of two sides, alone")
        return _target(f, choices, of_two=True)
    _refuse_what_is_no_function("compare", "compare(f, g, inputs=...)", f, *(() if g is None else (g,)))
    if g is None or choices.get("inputs") is None:
        missing = "second function" if g is None else "inputs"
        given = ", ".join(label_of(each) for each in (f, g) if each is not None)
        raise BenchmarkError(f"compare({given}): found no {missing}; expected compare(f, g, inputs=...)")
    return _asked([f, g], choices)


def _measured(f: Function | str, choices: Choices) -> Result:
    if isinstance(f, str):
        return _target(f, choices, of_two=False)
    _refuse_what_is_no_function("measure", "measure(f, inputs=...)", f)
    if choices.get("inputs") is None:
        raise BenchmarkError(f"measure({label_of(f)}): found no inputs; expected measure(f, inputs=...)")
    return _asked([f], choices)


def _refuse_what_is_no_function(asked: str, expected: str, *given: object) -> None:
    """Raises BenchmarkError for what cannot be called; a workload says what is computed and not how, so it is no function either."""
    for each in given:
        if isinstance(each, Workload):
            raise BenchmarkError(f"{asked}: found a Workload for a function; expected {expected.replace('...', 'WORKLOAD')}, or its target")
        if not callable(each):
            raise BenchmarkError(
                f"{asked}: found {_spelt(each)} for a function; expected {expected}, or a target, as ch07:transpose, alone"
            )


def _spelt(given: object) -> str:
    return repr(given) if isinstance(given, str) else label_of(given)


def _refuse_unknown(choices: Choices) -> None:
    """Raises BenchmarkError for a choice that does not exist, or has a value that it cannot have."""
    known = Choices.__optional_keys__
    if unknown := sorted(choices.keys() - known):
        near = difflib.get_close_matches(unknown[0], known, n=1)
        expected = f"{near[0]}=" if near else f"one of {', '.join(sorted(known))}"
        raise BenchmarkError(f"found {unknown[0]}=; expected {expected}")
    device: object = choices.get("device", "auto")
    if not isinstance(device, str) or device not in (each.value for each in Device):
        raise BenchmarkError(f"found device={device!r}; expected {' or '.join(repr(each.value) for each in Device)}")
    numbers: dict[str, tuple[object, str]] = {
        "gate": (choices.get("gate", _GATE), "a change in percent, 0 or more, as gate=0.5"),
        "wait": (choices.get("wait", _WAIT_S), "seconds, 0 or more, as wait=600"),
    }
    for name, (value, expected) in numbers.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
            raise BenchmarkError(f"found {name}={value!r}; expected {expected}")


def _question(choices: Choices) -> Question:
    """What of the choices is about the work."""
    stated: dict[str, Any] = {str(name): value for name, value in choices.items() if name in Stated.__optional_keys__}
    lists: dict[str, Any] = {name: tuple(stated[name]) for name in ("constants", "in_place") if name in stated}
    return Question(**{**stated, **lists})


def _names(functions: Sequence[Function], choices: Choices) -> tuple[str, ...]:
    """What the functions are called. Raises BenchmarkError for `names` that are not one text for each."""
    if "names" not in choices:
        return _distinct([label_of(each) for each in functions])
    given: object = choices["names"]
    names = tuple(given) if isinstance(given, (list, tuple)) else ()
    of_text = [each for each in names if isinstance(each, str) and each.strip() and each.isprintable()]
    if len(names) != len(functions) or len(set(of_text)) != len(functions):
        example = "('before', 'after')" if len(functions) > 1 else "('after',)"
        raise BenchmarkError(f"found names={given!r}; expected one text for each function, no two the same, as names={example}")
    return tuple(of_text)


def _asked(functions: list[Function], choices: Choices) -> Result:
    _refuse_unknown(choices)
    if "root" in choices:
        raise BenchmarkError("found root=; expected it with a target only, as in compare('mine:row_sum', root='kernels')")
    question, device = _question(choices), choices.get("device", "auto")
    gate, wait = choices.get("gate", _GATE), choices.get("wait", _WAIT_S)
    chosen: Literal["cuda", "cpu"] = "cuda" if device != "cpu" and torch.cuda.is_available() else "cpu"
    if device == "cuda" and chosen == "cpu":
        raise BenchmarkError("device='cuda': found no GPU that torch can use; expected one, or device='cpu'")
    sides = dict(zip(_names(functions, choices), functions, strict=True))
    try:
        return _timed(sides, question, chosen, gate, wait)
    except NotMeasured as failure:
        reference = _default_reference(sides, question)
        if failure.status is not Status.WRONG_RESULT or not reference:
            raise
        raise NotMeasured(
            failure.status, f"{failure.reason}{_of_rounding(failure.reason, question)}; {reference}, as none was given"
        ) from None


def _of_rounding(reason: str, question: Question) -> str:
    """What to do where the tolerance was not chosen, and what it does not allow may be rounding."""
    if "outside rtol=" not in reason or question.rtol is not None or question.atol is not None:
        return ""
    return "; these are the defaults: where the error is rounding, rtol= and atol= allow for it"


def _timed(functions: Mapping[str, Function], question: Question, chosen: Literal["cuda", "cpu"], gate: float, wait: float) -> Result:
    """The result of functions by name: in fresh processes where those find all of them, else in this one."""
    without = without_name(functions, question)
    why = f"no other process can import {' and '.join(without)}"
    if not without:
        try:
            with tempfile.TemporaryDirectory(prefix="compare_") as scratch:
                root = Path(scratch) / "root"
                noted = write_pair(root, functions, question, device=chosen)
                settings = Settings(
                    command="verify" if noted.interpreted else "run",
                    targets=(TARGET if len(functions) > 1 else f"{TARGET}_{BASELINE}",),
                    root=root,
                    device=Device(chosen),
                    gate=gate,
                    artifacts_dir=Path(scratch) / "run",
                    wait=wait,
                )
                asked = _Functions(tuple(functions), noted, _caveats(functions, question))
                return _of_run(settings, asked)
        except Replaced as name:
            why = f"another process finds another object as {name}"
    return _in_one_process(functions, question, chosen, gate, wait, why)


def _in_one_process(
    functions: Mapping[str, Function], question: Question, chosen: Literal["cuda", "cpu"], gate: float, wait: float, why: str
) -> Result:
    names = tuple(functions)
    device = torch.device(chosen)
    gpus = describe_machine(PROJECT_ROOT).gpus if chosen == "cuda" else ()
    sides = {side: (name, each) for side, name, each in zip(_SIDES, names, functions.values(), strict=False)}
    threads = torch.get_num_threads()
    try:
        with lock(gpus[0].uuid if gpus else "cpu", "compare", wait):
            if chosen == "cpu":
                torch.set_num_threads(1)  # as a side has one core
            timed = time_here(sides, question, device, secrets.randbits(48))
    except SideFailure as failure:
        raise NotMeasured(failure.status, _without_step(failure.reason)) from None
    finally:
        torch.set_num_threads(threads)
    floor = max(gate, floor_percent(timed, device))
    times = {names[_SIDES.index(side)]: widened(each, floor) for side, each in times_of(timed.units).items()}
    speedup = next((Speedup.of(widened(each, floor), floor) for each in speedups_of(timed.units).values()), None)
    caveats: tuple[str, ...] = (f"timed in one process, as {why}: intervals and band are wider by {floor:g} %",)
    if chosen == "cuda" and timed.workload.clock == "device" and not timed.held:
        caveats = (*caveats, "the stream could not be held: the host's launch latency is in the times")
    caveats = (*caveats, *timed.unseen, *_caveats(functions, question))
    if question.work is not None:
        caveats = (*caveats, "work gives no shares of the ceiling: those are of functions timed in fresh processes")
    return Result(
        names,
        times,
        speedup,
        "one process",
        chosen,
        timed.units,
        notes=caveats,
        caveats=caveats,
        inputs=timed.inputs,
        machine=gpus[0].name if gpus else cpu_model(),
        clock=timed.workload.clock if chosen == "cuda" else "host",
        cache=timed.workload.cache,
    )


def _target(target: str, choices: Choices, *, of_two: bool) -> Result:
    _refuse_unknown(choices)
    if stated := sorted(choices.keys() & Stated.__optional_keys__):
        raise BenchmarkError(f"{target}: found {stated[0]}=; expected it in the workload of the target, which states its own work")
    if "names" in choices:
        raise BenchmarkError(f"{target}: found names=; expected it with functions only, as a target's sides have names")
    tree = discover(Path(choices["root"]) if "root" in choices else default_root())
    selections = select(tree, (target,)).selections
    if len(selections) != 1:
        raise BenchmarkError(f"{target}: found {len(selections)} pairs; expected one, as {selections[0].pair.target}")
    if of_two and selections[0].is_half:
        pair = selections[0].pair.target
        raise BenchmarkError(f"{target}: found one side; expected both, as compare({pair!r}), or measure({target!r})")
    with tempfile.TemporaryDirectory(prefix="compare_") as scratch:
        settings = Settings(
            targets=(target,),
            root=tree.root,
            device=Device(choices.get("device", "auto")),
            gate=choices.get("gate", _GATE),
            artifacts_dir=Path(scratch) / "run",
            wait=choices.get("wait", _WAIT_S),
        )
        return _of_run(settings, None)


def _of_run(settings: Settings, functions: _Functions | None) -> Result:
    """The result of a run of one pair; that of `functions`, where they were written down as one."""
    names, caveats = (functions.names, functions.caveats) if functions else ((), ())
    watcher = _Silent()
    outcome = run_suite(settings, watcher)
    if outcome.exit_code is ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    if outcome.run.interrupted:
        raise BenchmarkError("; ".join((f"{settings.targets[0]}: the run was ended before its time", *watcher.notes[-1:])))
    (row,) = outcome.rows
    if row.status is not Status.PASSED:
        raise NotMeasured(row.status, _of_functions(row.reason, names) if names else row.reason)
    if functions and functions.noted.interpreted:
        raise NotMeasured(Status.SKIPPED, untimed(functions.noted.interpreted))
    if not row.timings:
        raise NotMeasured(Status.SKIPPED, "; ".join(row.notes) or f"{row.target} was checked, and has no time here")
    timing = next(iter(row.timings.values()))
    sides = [side for side in _SIDES if side in timing.time_ns] or list(timing.time_ns)
    names = names or tuple(sides)
    labels = dict(zip(sides, names, strict=True))
    interval = timing.speedups.get(OPTIMIZED)
    known = _noise(outcome.run, class_of_units(timing.clock, timing.units).value)
    return Result(
        names,
        {labels[side]: timing.time_ns[side] for side in sides},
        Speedup.of(interval, max(settings.gate, known)) if interval else None,
        "fresh processes",
        timing.device,
        timing.units,
        {labels[side]: share for side, share in timing.shares.items() if side in labels},
        (*caveats, *row.notes, *timing.notes),
        row,
        caveats,
        inputs=functions.noted.inputs if functions else {"target": row.target, **{key: str(each) for key, each in timing.shape.items()}},
        machine=_machine(outcome.run, timing),
        clock=timing.clock,
        cache=timing.cache,
    )


def _machine(run: Run, timing: PairTiming) -> str:
    """The model that a row was timed on; of several ranks also how many of it."""
    if timing.device == "cpu":
        return str(run.environment["cpu"])
    model = str(run.environment["gpus"][0]["name"])
    return f"{timing.ranks} x {model}" if timing.ranks > 1 else model


def _of_functions(reason: str, names: tuple[str, ...]) -> str:
    """A row's reason, as it is of functions: by their names, without the files that were written for them."""
    reason = reason.partition("; repeat: ")[0].replace(" at _=0", "")
    for side, name in zip(_SIDES, names, strict=False):
        reason = reason.replace(f"{side}_{PAIR}.py", f"function {name}")
    return _without_step(reason)


def _without_step(reason: str) -> str:
    """A reason, as it is of functions: what is called there has no step."""
    return reason.replace(": step returned ", " returned ")


def _noise(run: Run, step: str) -> float:
    return run.noise_percent.get(step, 0.0)


def _caveats(functions: Mapping[str, Function], question: Question) -> tuple[str, ...]:
    """What checks would not have found."""
    found = []
    if question.are_same_in_every_call:
        found.append("inputs are the same in every call: an answer remembered from an earlier call would not be seen")
    if reference := _default_reference(functions, question):
        found.append(f"{reference}: an error of its formula would not be seen")
    return tuple(found)


def _default_reference(functions: Mapping[str, Function], question: Question) -> str:
    """What the reference is where none was given, or nothing."""
    if question.reference is not None or isinstance(question.inputs, Workload):
        return ""
    first = next(iter(functions))
    return f"the reference is {f'the first function, {first},' if len(functions) > 1 else first} in {question.reference_in}"


def _distinct(names: list[str]) -> tuple[str, ...]:
    """Names of which no two are the same."""
    return tuple(f"{name} ({position})" if names.count(name) > 1 else name for position, name in enumerate(names, start=1))

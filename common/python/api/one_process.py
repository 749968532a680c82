"""Functions that no other process can import, timed here: the stream held, caches flushed, blocks interleaved by the harness's own sampler.

What a process is by chance, where its memory lies and which stream it got, is then one for all rounds, and no interval tells of it: so the
interval and the band are wider by what is known of that.
"""

from __future__ import annotations

import math
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from common.python.api.functions import Question, bound, described, only_inputs, specs_of
from common.python.api.interpreted import interpreted_launches
from common.python.api.tried import answer_of, failing, require_callable_with, tried_inputs
from common.python.child.device.sampler import Sampler
from common.python.child.sides.compare import (
    changed,
    check_placement,
    compare,
    poison_free_blocks,
    snapshot,
    take_outputs,
    upcast,
    without_value,
)
from common.python.child.sides.earlier import live_names, sentence_of, why_wrong
from common.python.child.sides.inputs import Inputs, mix
from common.python.errors import SideFailure, Status
from common.python.gate.noise_floor import StepClass, class_of_units
from common.python.gate.statistics import LEAST_UNITS, LOOK_EVERY, MOST_UNITS, speedups_of, times_of
from common.python.pairs.workload import Shape, Spec, Workload, call_by_name
from common.python.results import BASELINE, OPTIMIZED, Block, Interval, Unit

FLOOR_PERCENT = {StepClass.SHORT: 15.0, StepClass.MIDDLE: 3.0, StepClass.LONG: 3.0, StepClass.HOST: 3.0, StepClass.LAUNCH: 15.0}
"""How far apart timings of one function in one process were: `do_bench` in tools/noise/README.md, 14.3 % of 2.3 µs and 2.8 % of 180 µs."""

_PRECISE_PERCENT = 0.5
_BUDGET_NS = 5e9  # a function
_BLOCK_NS = 50e6
_FEWEST, _MOST = 3, 25  # samples of a block
_SHORT_NS, _BATCH = 20e3, 8
_WARM_S = 2.0
_DRAWS = 7  # beside the first: one of a few values, as a count of rare events, comes again by chance


@dataclass(frozen=True)
class Timed:
    """The rounds, whether the stream was held over all of them, what the functions were called with, in words, and what no check saw."""

    units: tuple[Unit, ...]
    held: bool
    workload: Workload
    inputs: Mapping[str, str]
    unseen: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Answered:
    """Inputs, and what they were answered with."""

    answers: Mapping[str, torch.Tensor]
    inputs: Mapping[str, torch.Tensor]


@dataclass
class _Function:
    """One function at work in this process, on inputs of its own."""

    name: str
    function: Callable[..., Any]
    question: Question
    workload: Workload
    device: torch.device
    folder: Path
    copies: int = 1
    per_sample: int = 0
    is_interpreted: bool = False
    is_reference: bool = False  # none was given, and this function is the first
    remembers_unseen: bool = False

    @property
    def who(self) -> str:
        return f"function {self.name}"

    @property
    def shape(self) -> Shape:
        return shape_here(self.workload, self.device)

    def begin(self, seed: int) -> Sampler:
        """Set up anew, on new memory, and warm up."""
        made = [Inputs(self.workload, self.shape, seed, self.device, self.folder) for _ in range(self.copies)]
        shape = dict(self.question.shape) or dict(self.shape)
        self.pairs = [(inputs, bound(self.function, inputs.values, shape)) for inputs in made]
        for _, step in self.pairs:
            step()
        sampler = Sampler(self.workload, self.pairs, self.device, self.who, self.take)
        sampler.settle()
        _, step_ns, sample_ns = sampler.warm(seed, -1, _WARM_S)
        if self.copies == 1 and step_ns < _SHORT_NS and self.device.type == "cuda":
            self.copies = _BATCH
            return self.begin(seed)
        self.per_sample = self.per_sample or max(_FEWEST, min(_MOST, int(_BLOCK_NS / max(sample_ns, 1.0))))
        return sampler

    def take(self, returned: object, copy: int = 0) -> dict[str, torch.Tensor]:
        """The outputs in what a call on the inputs of `copy` returned. Raises SideFailure where they are not what was stated."""
        inputs = self.pairs[copy][0]
        in_place = {name: tensor for name, tensor in inputs.tensors() if self.workload.may_change(name)}
        taken = take_outputs(returned, inputs.outputs(), in_place, self.who)
        check_placement(taken, inputs.outputs(), inputs.tensors(), self.device, self.who)
        return taken

    def check(self, seed: int) -> None:
        """Hold a call on the inputs of `seed` against the reference. Raises SideFailure."""
        inputs = Inputs(self.workload, self.shape, seed, self.device, self.folder)
        self.pairs = [(inputs, bound(self.function, inputs.values, dict(self.question.shape) or dict(self.shape), self.name))]
        first: _Answered | None = None
        for again in (seed, mix(seed, 1)):
            inputs.rewrite(again)
            before = snapshot({name: tensor for name, tensor in inputs.tensors() if not self.workload.may_change(name)})
            expected = self._expected(inputs)
            if self.is_reference:
                first = self._require_another(first, expected, inputs)
            poison_free_blocks(inputs.answers(), self.device)
            with interpreted_launches() as launches, failing(self.who):
                returned = self.pairs[0][1]()
            self.is_interpreted |= bool(launches)
            taken = self.take(returned)
            self.judge(taken, expected, inputs)
            if edited := changed(before, inputs.tensors()):
                raise SideFailure(Status.INPUT_MODIFIED, f"{self.who}: changed input {edited[0]}; expected it as it was, or in in_place")
        inputs.remove_files()

    def _require_another(self, first: _Answered | None, expected: Mapping[str, torch.Tensor], inputs: Inputs) -> _Answered:
        """Raises SideFailure if inputs of several draws have one answer, as of a function that remembers it.

        What it answers is what it is held against, so nothing else would tell. Of answers that may well be one, as `True` may, it is noted.
        """
        if first is None:
            return _Answered(snapshot(expected), snapshot(dict(inputs.tensors())))
        seed = inputs.seed
        for draw in range(_DRAWS):
            if not changed(first.inputs, inputs.tensors()) or changed(first.answers, expected.items()):
                inputs.rewrite(seed)
                return first
            inputs.rewrite(mix(seed, draw))
            expected = self._expected(inputs)
        inputs.rewrite(seed)
        if any(map(_tells, first.answers.values())):
            found = (
                f"{self.who}: gave the same answer to {_DRAWS + 1} draws of its inputs, as a function that remembers its first answer does"
            )
            wanted = "expected answers that change with the inputs, or reference=, which says that this one is right"
            raise SideFailure(Status.WRONG_RESULT, f"{found}; {wanted}")
        self.remembers_unseen = True
        return first

    def check_timed(self, sampler: Sampler, seed: int) -> None:
        """Hold the last timed call, on the inputs of `seed`, against the reference; where steps change them those are gone."""
        if not self.workload.in_place:
            taken = snapshot(self.take(sampler.returned[0], sampler.first))
            inputs = self.pairs[sampler.first][0]
            inputs.rewrite(seed)
            self.judge(taken, self._expected(inputs), inputs)

    def _expected(self, inputs: Inputs) -> dict[str, torch.Tensor]:
        assert self.workload.reference is not None, "a question has one"
        values = {**self.shape, **upcast(inputs.values, getattr(torch, self.workload.reference_in))}
        returned = call_by_name(self.workload.reference, values, "reference")
        tensors = (returned,) if isinstance(returned, torch.Tensor) else returned
        expected = dict(zip(inputs.outputs(), tensors, strict=True))
        for name, tensor in expected.items():
            if why := without_value(name, tensor):
                raise SideFailure(Status.WRONG_RESULT, f"reference returned {why}")
        return expected

    def judge(self, taken: Mapping[str, torch.Tensor], expected: Mapping[str, torch.Tensor], inputs: Inputs) -> None:
        """Raises SideFailure(WRONG_RESULT) for an output outside the tolerance; `inputs` are overwritten then, to find out why."""
        side, specs = BASELINE if self.name == BASELINE else OPTIMIZED, inputs.outputs()
        for name, tensor in taken.items():
            tolerance = self.workload.tolerance(side, specs[name])
            _, mismatch = compare(name, tensor, expected[name], tolerance)
            if mismatch:
                why = why_wrong({name: tensor}, expected, {name: tolerance}, self._others(inputs))
                raise SideFailure(Status.WRONG_RESULT, "; ".join(filter(None, (f"{self.who}: {mismatch}", why))))

    def _others(self, inputs: Inputs) -> Iterator[tuple[str, Callable[[], Mapping[str, torch.Tensor]]]]:
        """The answers to what the inputs were before."""
        for seed in inputs.earlier:

            def other(seed: int = seed) -> Mapping[str, torch.Tensor]:
                inputs.rewrite(seed)
                return self._expected(inputs)

            yield sentence_of(seed, live_names(self.workload, inputs)), other


def _tells(tensor: torch.Tensor) -> bool:
    """Whether no other inputs are likely to have this very answer: it is neither one value everywhere nor a whole number alone."""
    flat = tensor.reshape(-1)
    if flat.numel() > 1:
        return not bool((flat == flat[0]).all() | flat.isnan().all())
    return bool((flat != flat.round()).all()) if flat.is_floating_point() else False


def shape_here(workload: Workload, device: torch.device) -> Shape:
    """The shape that is timed on `device`."""
    if device.type == "cpu" and workload.cpu_at is not None:
        return workload.cpu_at
    return next(iter(workload.timed_shapes.values()))


def time_here(functions: Mapping[str, tuple[str, Callable[..., Any]]], question: Question, device: torch.device, seed: int) -> Timed:
    """Check and time functions, by side with their names, in this process.

    Raises SideFailure for a wrong one, and for one that is right and has no time here.
    """
    with tempfile.TemporaryDirectory() as scratch, torch.no_grad():
        folder = Path(scratch)
        workload = _workload(*next(iter(functions.values())), question, device, seed, folder)
        sides = {side: _Function(name, each, question, workload, device, folder) for side, (name, each) in functions.items()}
        if question.reference is None and not isinstance(question.inputs, Workload):
            next(iter(sides.values())).is_reference = True
        for side in sides.values():
            side.check(seed)
        remembering = [side.name for side in sides.values() if side.remembers_unseen]
        unseen = [
            f"{name} gave the same answer to all draws: one remembered from an earlier call would not be seen" for name in remembering
        ]
        if interpreted := [side.name for side in sides.values() if side.is_interpreted]:
            raise SideFailure(Status.SKIPPED, untimed(interpreted))
        inputs = described(next(iter(sides.values())).pairs[0][0].values)
        units: list[Unit] = []
        held, spent_ns = True, 0.0
        while not _enough(units, spent_ns, len(sides)):
            order = [*sides] if len(units) % 2 == 0 else [*sides][::-1]
            begin = time.monotonic()
            unit, unit_held = _round(sides, order, mix(seed, 1000 + len(units)))
            spent_ns += 1e9 * (time.monotonic() - begin)
            held &= unit_held
            units.append(unit)
    return Timed(tuple(units), held, workload, inputs, tuple(unseen))


def untimed(interpreted: Iterable[str]) -> str:
    """Why functions that Triton's interpreter runs have no time."""
    return f"{' and '.join(interpreted)} ran in Triton's interpreter, which says nothing of speed: checked here, not timed; expected a GPU"


def _workload(name: str, first: Callable[..., Any], question: Question, device: torch.device, seed: int, folder: Path) -> Workload:
    require_callable_with(question.inputs, question.shape)
    drafted = question.workload(first, {"out": Spec((1,), torch.float32)})
    inputs = tried_inputs(drafted, shape_here(drafted, device), seed, device, folder)
    if isinstance(question.inputs, Workload):
        return question.inputs
    returned = answer_of(bound(first, only_inputs(inputs.values, {}), question.shape, name), name)
    return question.workload(first, specs_of(returned, name))


def _round(sides: Mapping[str, _Function], order: list[str], seed: int) -> tuple[Unit, bool]:
    """One round: every function set up anew, then blocks in the order A B B A."""
    samplers = {name: sides[name].begin(seed) for name in order}
    blocks: dict[str, list[Block]] = {name: [] for name in sides}
    for position, name in enumerate([*order, *reversed(order)]):
        first = mix(seed, position)
        samples, void = samplers[name].block(first, sides[name].per_sample, {}, lambda _: None, sustained=False)
        clocks = tuple(sample.sm_clock_hz for sample in samples if sample.sm_clock_hz)
        blocks[name].append(Block(seed=first, samples_ns=tuple(sample.ns for sample in samples), sm_clock_hz=clocks, void=void))
        if position >= len(order):
            sides[name].check_timed(samplers[name], first + (len(samples) - 1) * samplers[name].calls_per_sample)
    for side in sides.values():
        for inputs, _ in side.pairs:
            inputs.remove_files()
    held = all(sampler.hold for sampler in samplers.values())
    return Unit(order=tuple(order), blocks={name: tuple(found) for name, found in blocks.items()}), held


def _enough(units: list[Unit], spent_ns: float, functions: int) -> bool:
    if len(units) < LEAST_UNITS or len(units) % LOOK_EVERY:
        return False
    intervals = [*speedups_of(units).values()] or [*times_of(units).values()]
    is_precise = max(interval.half_width_percent for interval in intervals) <= _PRECISE_PERCENT
    return is_precise or len(units) >= MOST_UNITS or spent_ns >= _BUDGET_NS * functions


def floor_percent(timed: Timed, device: torch.device) -> float:
    """What one process leaves unknown of these functions, in percent."""
    clock = timed.workload.clock if device.type == "cuda" else "host"
    return FLOOR_PERCENT[class_of_units(clock, timed.units)]


def widened(interval: Interval, floor: float) -> Interval:
    """An interval of rounds of one process, wider by what no round of that process tells."""
    known = math.log1p(floor / 100)
    low, high = (math.hypot(math.log(interval.estimate / end), known) for end in (interval.low, interval.high))
    return Interval(estimate=interval.estimate, low=interval.estimate * math.exp(-low), high=interval.estimate * math.exp(high))

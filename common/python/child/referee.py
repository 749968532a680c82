"""The process that judges: it makes inputs and reference itself, from the seed, and never imports a side."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from common.python.child.distributed import take_device
from common.python.child.outputs import read_dump
from common.python.child.serving.judge import judge_trace
from common.python.child.sides.compare import compare, upcast, without_value
from common.python.child.sides.earlier import live_names, sentence_of, what_is_unwritten, why_wrong
from common.python.child.sides.inputs import DeviceInputs, Inputs, leaves, mapped, warm_digest
from common.python.child.sides.loader import load_workload
from common.python.child.sides.triton import mend_interpreter_of_side
from common.python.errors import BenchmarkError, SideFailure, Status
from common.python.machine.description import set_compile_environment
from common.python.pairs.layout import place_of
from common.python.pairs.workload import Shape, Spec, Workload, call_by_name
from common.python.processes import messages
from common.python.processes.messages import Answer, AnyRequest
from common.python.results import OutputError

_Tensors = Mapping[str, torch.Tensor]
_NONE: Mapping[str, Any] = MappingProxyType({})

_REFERENCES_KEPT = 2
_SLOW_S = 2.0
_ROWS_PICKED = 1024  # beside the first and the last: all of them miss a wrong 1/64 of the rows with a probability of (63/64)^1024 = 1e-7


@dataclass(frozen=True)
class _Expected:
    """What a call must return on inputs of that digest; of `rows` alone, unless that is None.

    `unfit` is a sentence on a state from which any answer would be right, or empty; `notes` say what is to be known of the reference.
    """

    digest: str
    values: Mapping[str, torch.Tensor]
    rows: torch.Tensor | None = None
    unfit: str = ""
    notes: tuple[str, ...] = ()


class Referee:
    """Answers Judge requests; keeps the inputs of one shape and the latest references, which both sides share."""

    def __init__(self) -> None:
        self._workloads: dict[str, Workload] = {}
        self._inputs: dict[str, Inputs] = {}
        self._references: dict[str, _Expected] = {}
        self._weights: dict[str, str] = {}  # digests of the inputs of a serving workload, which nothing rewrites
        self._random = random.SystemRandom()  # no seed of it is in any request: no side can know which rows are looked at

    def answer(self, request: AnyRequest) -> Answer:
        """Judge the outputs that `request` names, or get ready to. Raises SideFailure."""
        if isinstance(request, messages.Attend):
            take_device(request.rank, request.ranks if request.device == "cuda" else 1)
            warm_digest(torch.device(request.device))
            return messages.Ready(nonce=request.nonce)
        if isinstance(request, messages.JudgeTrace):
            return self._judge_trace(request)
        if not isinstance(request, messages.Judge):
            raise SideFailure(Status.CRASHED, f"the referee was asked for {request.kind}; expected judge")
        workload = self._workload(request)
        inputs = self._inputs_of(workload, request)
        specs = inputs.answers()
        state = {each.name: read_dump(each, specs[each.name], torch.device(request.device)) for each in request.found}
        expected = self._reference(workload, request, inputs, state)
        if not request.side:  # none has answered yet: the reference alone was asked for
            return messages.Ready(nonce=request.nonce)
        errors: dict[str, OutputError] = {}
        mismatches = [expected.unfit] if expected.unfit else []
        wrong: dict[str, torch.Tensor] = {}
        for dumped in request.outputs:
            found = read_dump(dumped, specs[dumped.name], torch.device(request.device))
            tolerance = workload.tolerance(request.side, specs[dumped.name])
            errors[dumped.name], mismatch = compare(dumped.name, found, expected.values[dumped.name], tolerance, expected.rows)
            if mismatch:
                mismatches.append(mismatch)
                wrong[dumped.name] = found
        if set(errors) != set(specs):
            raise SideFailure(Status.WRONG_RESULT, f"found outputs {sorted(errors)}; expected {sorted(specs)}")
        if wrong and not expected.unfit and (why := self._why(workload, request, inputs, state, expected, wrong)):
            mismatches.append(why)
        mismatch, notes = "; ".join(mismatches), list(expected.notes)
        return messages.Judged(nonce=request.nonce, digest=expected.digest, outputs=errors, mismatch=mismatch, notes=notes)

    def _judge_trace(self, request: messages.JudgeTrace) -> Answer:
        workload = self._workload(request)
        if workload.serving is None:
            raise SideFailure(Status.CRASHED, "the referee was asked to judge a trace of what is no serving workload; expected one that is")
        place, inputs = _place(request), self._inputs_of(workload, request)
        if place not in self._weights:
            self._weights = {place: inputs.digest()}
        judged = judge_trace(workload.serving, request, inputs.values, self._weights[place], self._random)
        size = sum(tensor.numel() * tensor.element_size() for _, tensor in inputs.tensors())
        return judged.model_copy(update={"weight_bytes": size})

    def close(self) -> None:
        """Delete the input files."""
        for inputs in self._inputs.values():
            inputs.remove_files()

    def _workload(self, request: messages.Judge | messages.JudgeTrace) -> Workload:
        if request.workload not in self._workloads:
            # A reference may be a Triton function too, as where two functions are compared and none was given.
            set_compile_environment(interpret=request.device == "cpu", caches=None)
            self._workloads[request.workload] = load_workload(Path(request.workload))
            mend_interpreter_of_side()
        return self._workloads[request.workload]

    def _inputs_of(self, workload: Workload, request: messages.Judge | messages.JudgeTrace) -> Inputs:
        place = _place(request)
        if place not in self._inputs:
            self.close()
            device = torch.device(request.device)
            rank = request.rank, request.ranks
            self._inputs = {place: DeviceInputs(workload, request.shape, request.prepare_seed, device, Path(request.folder), rank)}
        return self._inputs[place]

    def _reference(self, workload: Workload, request: messages.Judge, inputs: Inputs, state: _Tensors) -> _Expected:
        if state:  # of one side alone
            return _evolved(workload, request, inputs, state)
        key = f"{_place(request)} {request.seed}"
        if key not in self._references:
            rows = self._rows(workload, request.shape, inputs)
            made = _evolved(workload, request, inputs, {}) if workload.evolves else _answered(workload, request, inputs, rows)
            while len(self._references) >= _REFERENCES_KEPT:
                del self._references[next(iter(self._references))]
            self._references[key] = made
        return self._references[key]

    def _why(
        self, workload: Workload, request: messages.Judge, inputs: Inputs, state: _Tensors, expected: _Expected, wrong: _Tensors
    ) -> str:
        """A sentence on tensors that are wrong because the step did not read its input, or ""."""
        before = [seed for seed in request.earlier if seed != request.seed]
        if unwritten := what_is_unwritten(wrong, called_before=any(seed != request.prepare_seed for seed in before)):
            return unwritten
        if workload.evolves:
            candidates = _steps_on_others(workload, request, inputs, state, before)
        else:
            rows = self._rows(workload, request.shape, inputs) if expected.rows is None else expected.rows.tolist()
            candidates = _others(workload, request, inputs, rows, before)
        specs = inputs.answers()
        tolerances = {name: workload.tolerance(request.side, specs[name]) for name in wrong}
        return why_wrong(wrong, expected.values, tolerances, candidates, expected.rows)

    def _rows(self, workload: Workload, shape: Shape, inputs: Inputs) -> Sequence[int]:
        """The rows that are asked of `reference_rows` at `shape`, ascending; none where `reference` is asked for everything."""
        checked_whole = any(shape == check for check in workload.check_at)
        if workload.reference_rows is None or (checked_whole and workload.reference is not None):
            return ()
        count = next(iter(inputs.outputs().values())).shape[0]
        if checked_whole or count <= _ROWS_PICKED + 2:
            return range(count)
        return [0, *sorted(self._random.sample(range(1, count - 1), _ROWS_PICKED)), count - 1]


def _place(request: messages.Judge | messages.JudgeTrace) -> str:
    return f"{request.workload} {sorted(request.shape.items())} {request.prepare_seed} {request.rank} of {request.ranks}"


def _others(
    workload: Workload, request: messages.Judge, inputs: Inputs, rows: Sequence[int], earlier: Sequence[int]
) -> Iterator[tuple[str, Callable[[], _Tensors]]]:
    """The answers of a step that did not read its inputs again, or not one of them, each with what is to be told of it."""
    names = live_names(workload, inputs)

    def answer(seed: int, stale: Mapping[str, Any]) -> _Tensors:
        return _answered(workload, _of_seed(request, seed), inputs, rows, stale).values

    for seed in earlier:
        yield _told(request, seed, names), partial(answer, seed, {})
    one_by_one = names if len(names) > 1 and request.ranks == 1 else ()  # other ranks read what is theirs
    for seed, name in itertools.product(earlier, one_by_one):
        inputs.rewrite(seed)
        stale = {name: mapped(inputs.values[name], lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf)}
        yield _told(request, seed, [name]), partial(answer, request.seed, stale)


def _steps_on_others(
    workload: Workload, request: messages.Judge, inputs: Inputs, found: _Tensors, earlier: Sequence[int]
) -> Iterator[tuple[str, Callable[[], _Tensors]]]:
    """The same of a state that evolves: all steps on what the first of them should read, or on inputs of another check."""
    names = live_names(workload, inputs)

    def answer(seed: int, *, anew: bool) -> _Tensors:
        return _evolved(workload, _of_seed(request, seed), inputs, found, anew=anew).values

    for seed in () if found else (request.seed, *earlier):
        yield _told(request, seed, names), partial(answer, seed, anew=False)
    for seed in earlier:
        yield _told(request, seed, names), partial(answer, seed, anew=True)


def _of_seed(request: messages.Judge, seed: int) -> messages.Judge:
    return request.model_copy(update={"seed": seed})


def _told(request: messages.Judge, seed: int, unread: Sequence[str]) -> str:
    return sentence_of(seed, unread, of_prepare=seed == request.prepare_seed)


def _answered(
    workload: Workload,
    request: messages.Judge,
    inputs: Inputs,
    rows: Sequence[int],
    stale: Mapping[str, Any] = _NONE,
) -> _Expected:
    """What `reference` says, or of `rows`, if there are any, what `reference_rows` says; with inputs that are `stale` in place of these."""
    inputs.rewrite(request.seed)
    digest = inputs.digest()
    precise = getattr(torch, workload.reference_in)
    own = upcast({**inputs.values, **stale}, precise)
    values = {**request.shape, **_of_rank(inputs, request, request.seed, own, precise), **own}
    specs = inputs.outputs()
    if rows and workload.reference_rows is not None:
        where = f"{Path(request.workload).name}: reference_rows"
        asked = torch.tensor(rows, dtype=torch.int64, device=request.device)
        whole = len(rows) == next(iter(specs.values())).shape[0]
        specs = {name: replace(spec, shape=(len(rows), *spec.shape[1:])) for name, spec in specs.items()}
        found = _apart(_named(call_by_name(workload.reference_rows, {**values, "rows": asked}, where), specs, where), inputs)
        return _Expected(digest, found, None if whole else asked)
    assert workload.reference is not None, "a workload has one of the two"
    where = f"{Path(request.workload).name}: reference"
    _wait(request)
    begin = time.monotonic()
    found = _apart(_named(call_by_name(workload.reference, values, where), specs, where), inputs)
    _wait(request)
    return _Expected(digest, found, notes=_slowness(time.monotonic() - begin, workload, request))


def _apart(values: dict[str, torch.Tensor], inputs: Inputs) -> dict[str, torch.Tensor]:
    """`values` in storage of their own: a reference may return an input, which gets the values of other calls."""
    theirs = {tensor.untyped_storage().data_ptr() for _, tensor in inputs.tensors()}
    return {name: value.clone() if value.untyped_storage().data_ptr() in theirs else value for name, value in values.items()}


def _of_rank(inputs: Inputs, request: messages.Judge, seed: int, own: dict[str, Any], precise: torch.dtype) -> dict[str, Any]:
    """What a reference may ask for of the rank that is judged; nothing where there is no other."""
    if request.ranks == 1:
        return {}
    shards = inputs.shards(seed, own, lambda values: upcast(values, precise))
    return {**place_of(request.rank, request.ranks), "shards": shards}


def _slowness(seconds: float, workload: Workload, request: messages.Judge) -> tuple[str, ...]:
    if seconds <= _SLOW_S or any(request.shape == check for check in workload.check_at):
        return ()
    entries = " ".join(f"{key}={value}" for key, value in request.shape.items())
    name = Path(request.workload).name
    return (f"{name}: reference took more than {_SLOW_S:g} s at {entries}; expected reference_rows, which is asked for random rows",)


def _evolved(workload: Workload, request: messages.Judge, inputs: Inputs, found: _Tensors, *, anew: bool = True) -> _Expected:
    """What the last of `steps` steps from a fresh `prepare` returns and the state behind it; or of one step, from the state it `found`.

    Each step has inputs of its own, or, if they are not made `anew`, those of the first.
    """
    assert workload.reference is not None, "a state that evolves has one"
    where = f"{Path(request.workload).name}: reference"
    precise = getattr(torch, workload.reference_in)
    state = mapped({name: inputs.values[name] for name in workload.in_place}, lambda leaf: upcast(leaf, precise).clone())
    tensors = dict(leaves(state))
    specs = inputs.answers()
    unfit = ""
    for name, tensor in found.items():
        tensors[name].copy_(tensor)
        if torch.isnan(tensor).any():  # which is right wherever the reference has it too
            unfit = f"state {name} held NaN before the call; expected numbers, however often the step was called"
    live = {name: value for name, value in inputs.values.items() if name not in state}
    returned: Any = None
    for step in range(1 if found else workload.steps):
        inputs.rewrite(seed := request.seed + step * anew)
        own = {**upcast(live, precise), **state}
        of_rank = _of_rank(inputs, request, seed, own, precise)
        returned = call_by_name(workload.reference, {**request.shape, **of_rank, **own}, where)
    outputs = {name: spec for name, spec in specs.items() if not workload.may_change(name)}
    answers = _apart(_named(returned, outputs, where, any_value=bool(unfit)), inputs)
    return _Expected(inputs.digest(), {**answers, **tensors}, unfit=unfit)


def _wait(request: messages.Judge) -> None:
    if request.device == "cuda":
        torch.cuda.synchronize()


def _named(returned: Any, specs: dict[str, Spec], where: str, *, any_value: bool = False) -> dict[str, torch.Tensor]:
    values = (returned,) if isinstance(returned, torch.Tensor) else tuple(() if returned is None else returned)
    if len(values) != len(specs):
        raise BenchmarkError(f"{where} returned {len(values)} values; expected {len(specs)}: {', '.join(specs)}")
    for (name, spec), value in zip(specs.items(), values, strict=True):
        if tuple(value.shape) != tuple(spec.shape):
            raise BenchmarkError(f"{where} returned {name} of shape {tuple(value.shape)}; expected {tuple(spec.shape)}, as outputs says")
        if why := "" if any_value else without_value(name, value):
            raise BenchmarkError(f"{where} returned {why}")
    return dict(zip(specs, values, strict=True))

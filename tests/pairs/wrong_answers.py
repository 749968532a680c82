"""Wrong answers that a tolerance must refuse, derived from the workload alone, and whether it does.

A run compares a side at every shape of `check_at`, so a wrong answer is refused if one of these shapes refuses it: the smallest at
which it can be told, so that the others cost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from common.python.child.sides.compare import compare, upcast
from common.python.child.sides.inputs import Inputs, leaves, mapped
from common.python.pairs.layout import place_of
from common.python.pairs.workload import Shape, Spec, Workload, call_by_name
from tests.support.teeth import CPU, rounded

# Bits of mantissa of the precision below that of a dtype, or of a unit in `work`. Below BF16 it is a bit less, which is nearer than FP8.
BELOW = {torch.float64: 23, torch.float32: 10, torch.float16: 7, torch.bfloat16: 6, torch.float8_e4m3fn: 1, torch.float8_e5m2: 1}
BELOW_UNITS = {"fp8": 1, "bf16": 3, "fp16": 3, "tf32": 7}
SHARE = 64  # of an input: 1/64 is dropped along one axis
MOST_ELEMENTS = 1 << 22  # of inputs and outputs at a shape


@dataclass(frozen=True)
class Options:
    """What a pair's workload does not tell.

    bits     of mantissa of the precision below the declared one
    small    inputs of which 1/64 is less than the tolerance, by dotted name and axis, and why
    """

    bits: int | None = None
    small: Mapping[tuple[str, int], str] = field(default_factory=dict)


class Untestable(AssertionError):
    """No wrong answers can be derived from a workload; the text is one sentence that says which option is missing."""


@dataclass(frozen=True)
class Case:
    """The inputs at one check shape and the right answer."""

    workload: Workload
    shape: Shape
    values: Mapping[str, Any]
    right: tuple[torch.Tensor, ...]
    specs: tuple[Spec, ...] = ()

    def refuses(self, found: tuple[torch.Tensor, ...], side: str) -> bool:
        """Whether a run of `side` would take an answer for wrong."""
        tolerances = (self.workload.tolerance(side, spec) for spec in self.specs)
        return any(compare("", *each)[1] for each in zip(found, self.right, tolerances, strict=True))

    def answer(self, values: Mapping[str, Any]) -> tuple[torch.Tensor, ...]:
        """What the reference makes of other values."""
        return answer(self.workload, self.shape, values)


Wrong = Callable[[Case], tuple[torch.Tensor, ...] | None]
"""A wrong answer of a case; None where the case has none of the kind."""


def answer(workload: Workload, shape: Shape, values: Mapping[str, Any]) -> tuple[torch.Tensor, ...]:
    """The outputs by the reference, and the state that evolves after its steps."""
    values = mapped(
        upcast(values, getattr(torch, workload.reference_in)), lambda leaf: leaf.clone() if isinstance(leaf, torch.Tensor) else leaf
    )
    available = {**shape, **values}
    if workload.ranks:
        available |= _of_rank(workload, shape, values)
    if workload.reference is None:
        count = next(iter(workload.outputs(**shape).values())).shape[0]
        return _tuple(call_by_name(workload.reference_rows, {**available, "rows": torch.arange(count)}, "reference_rows"))
    for _ in range(workload.steps):
        returned = _tuple(call_by_name(workload.reference, available, "reference"))
    state = [leaf for name, leaf in leaves(values) if workload.evolves and workload.may_change(name)]
    return (*(tensor.clone() for tensor in returned), *state)


def _of_rank(workload: Workload, shape: Shape, own: dict[str, Any]) -> dict[str, Any]:
    """What a reference may ask for of rank 0 of as few as the workload runs in, whose own inputs are `own`."""
    place, precise = (0, min(workload.ranks)), getattr(torch, workload.reference_in)
    with TemporaryDirectory() as folder:
        inputs = Inputs(workload, shape, 1, CPU, Path(folder), place)
    return {**place_of(*place), "shards": inputs.shards(1, own, lambda values: upcast(values, precise))}


def _tuple(returned: Any) -> tuple[torch.Tensor, ...]:
    return (returned,) if isinstance(returned, torch.Tensor) else tuple(returned or ())


def cases_of(workload: Workload, shapes: Sequence[Shape], folder: Path) -> list[Case]:
    """A case a shape, the smallest first; where there are others, none in which one element decides, and no large one."""
    found = []
    for position, shape in enumerate(shapes):
        own = folder / str(position)  # input files are named alike
        own.mkdir()
        inputs = Inputs(workload, shape, 1, CPU, own, (0, min(workload.ranks, default=1)))
        specs = tuple(inputs.answers().values())
        answers = [spec.elements for spec in specs]
        found.append((sum(tensor.numel() for _, tensor in inputs.tensors()) + sum(answers), max(answers), shape, inputs.values, specs))
    found.sort(key=lambda each: each[0])
    small = [each for each in found if each[0] <= MOST_ELEMENTS] or found[:1]
    telling = [each for each in small if each[1] >= SHARE] or small
    return [Case(workload, shape, values, answer(workload, shape, values), specs) for *_, shape, values, specs in telling]


def taken(workload: Workload, side: str, options: Options, shapes: Sequence[Shape] = ()) -> list[str]:
    """The wrong answers that `side`'s tolerance takes for right at each of `shapes`, or else at every check shape. Raises Untestable."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # on tensors this small, several threads do little but wait for each other
    try:
        with TemporaryDirectory() as folder:
            cases = cases_of(workload, shapes or workload.check_at, Path(folder))
            wrong = dict(_wrong_answers(workload, side, options, cases))
            return [label for label, make in wrong.items() if not _is_refused(make, cases, side)]
    finally:
        torch.set_num_threads(threads)


def _is_refused(make: Wrong, cases: list[Case], side: str) -> bool:
    answers = ((case, make(case)) for case in cases)
    return any(found is not None and case.refuses(found, side) for case, found in answers)


def _wrong_answers(workload: Workload, side: str, options: Options, cases: list[Case]) -> Iterator[tuple[str, Wrong]]:
    largest = cases[-1]
    for position, (output, spec) in enumerate(zip(largest.right, largest.specs, strict=True)):
        for label, spoil in _spoilers(workload.tolerance(side, spec).rtol, output):
            yield f"{label} in output {position}", _spoiling(position, spoil)
    yield from _less_work(largest, cases, options)
    if any(output.dtype.is_floating_point for output in largest.right):
        bits = _bits_below(workload, side, largest) if options.bits is None else options.bits
        if any(dtype.is_floating_point for dtype in _dtypes(largest)):
            yield f"inputs of {bits} bits", lambda case: case.answer(rounded(case.values, bits))
        else:
            yield f"an answer of {bits} bits", lambda case: tuple(rounded(list(case.right), bits))


def _spoilers(rtol: float, output: torch.Tensor) -> Iterator[tuple[str, Callable[[torch.Tensor], torch.Tensor]]]:
    """Ways to spoil one output, whose elements are compared exactly if they are integers."""
    yield "zeros", torch.zeros_like
    if output.numel() > 1:
        yield "a shuffle", lambda right: right.reshape(-1).roll(1).view_as(right)
    if output.dtype.is_floating_point:
        yield "a NaN", lambda right: _last(right, lambda _: math.nan)
    if rtol and output.dtype.is_floating_point:
        yield "(1 + 8 rtol) times", lambda right: right * (1 + 8 * rtol)
    else:
        yield "one value off by one", lambda right: _last(right, lambda value: value + 1)


def _last(right: torch.Tensor, change: Callable[[Any], Any]) -> torch.Tensor:
    wrong = right.clone()
    wrong.view(-1)[-1] = change(wrong.view(-1)[-1].item())
    return wrong


def _spoiling(position: int, spoil: Callable[[torch.Tensor], torch.Tensor]) -> Wrong:
    """An answer of which the output at `position` alone is wrong."""
    return lambda case: tuple(spoil(output) if i == position else output for i, output in enumerate(case.right))


def _less_work(largest: Case, cases: list[Case], options: Options) -> Iterator[tuple[str, Wrong]]:
    """Answers without 1/64 of an input, along each of its axes, wherever these have 64 entries in a check shape, or else as many as any."""
    tensors = {name: leaf for name, leaf in leaves(largest.values) if isinstance(leaf, torch.Tensor)}
    unknown = options.small.keys() - {(name, axis) for name, leaf in tensors.items() for axis in range(leaf.dim())}
    if unknown:
        raise Untestable(f"found options for {sorted(unknown)}; expected inputs and axes among {sorted(tensors)}")
    for name, leaf in tensors.items():
        for axis in range(leaf.dim()):
            if (name, axis) not in options.small:
                least = min(SHARE, max(_length(case, name, axis) for case in cases))
                yield f"1/{SHARE} of {name} along axis {axis} dropped", _dropping(name, axis, least)


def _length(case: Case, name: str, axis: int) -> int:
    """The extent of an input along an axis; 0 where a list is too short at the case's shape to have it."""
    found = dict(leaves(case.values)).get(name)
    return 0 if found is None else int(found.shape[axis])


def _dropping(name: str, axis: int, least: int) -> Wrong:
    def wrong(case: Case) -> tuple[torch.Tensor, ...] | None:
        return case.answer(_without(case.values, name, axis)) if _length(case, name, axis) >= least else None

    return wrong


def _without(tree: Any, name: str, axis: int) -> Any:
    """`tree` with the first 1/64 of its leaf `name` along `axis` set to zero."""
    if not name:
        changed = tree.clone()
        changed.narrow(axis, 0, math.ceil(changed.shape[axis] / SHARE)).fill_(0)
        return changed
    if isinstance(tree, Mapping):
        named = {key: f"{key}." for key in tree}  # a key may have dots of its own
        return {
            key: _without(value, name[len(named[key]) :], axis) if f"{name}.".startswith(named[key]) else value
            for key, value in tree.items()
        }
    head, _, rest = name.partition(".")
    return [_without(value, rest, axis) if str(i) == head else value for i, value in enumerate(tree)]


def _dtypes(case: Case) -> set[torch.dtype]:
    return {leaf.dtype for _, leaf in leaves(case.values) if isinstance(leaf, torch.Tensor)}


def _bits_below(workload: Workload, side: str, case: Case) -> int:
    """Bits of mantissa of the precision below the lowest of inputs and outputs, or below that of the unit where a side `changes` it."""
    if side == "optimized" and workload.changes is not None:
        units = [bits for unit, bits in BELOW_UNITS.items() if unit in workload.work_of(case.shape)]
        if not units:
            raise Untestable(
                f"found no unit of {', '.join(BELOW_UNITS)} in `work` of a workload with `changes`; expected an entry with `bits`"
            )
        return min(units)
    dtypes = _dtypes(case) | {spec.dtype for spec in workload.outputs_of(case.shape, place_of(0, min(workload.ranks, default=1))).values()}
    known = [BELOW[dtype] for dtype in dtypes if dtype in BELOW]
    if not known:
        raise Untestable("found no floating-point input or output of a known precision; expected an entry with `bits`")
    return min(known)

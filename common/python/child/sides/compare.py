"""Right or wrong: poison before a call, structure and bits after it, and the comparison with the reference."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from common.python.child.sides.host_memory import bytes_of, empty_in, place_of
from common.python.child.sides.inputs import mapped
from common.python.errors import SideFailure, Status
from common.python.pairs.workload import Precision, Spec, Where
from common.python.results import OutputError

# Captured before any side is imported, so a side that patches torch patches nothing here.
_equal = torch.equal
_empty = torch.empty
_clone = torch.Tensor.clone
_copy = torch.Tensor.copy_
_fill = torch.Tensor.fill_

_FLOAT_POISON = 0xFF  # every byte set is a NaN in every IEEE format and in e4m3 and e5m2
_INTEGER_POISON = 0xA5
_POISONED_BYTES = 64 << 20  # of an output's size, unless two blocks are more: an allocator may hold many free blocks of a small one
_HEAP_BLOCKS = 256  # an interpreter's heap has many holes of some hundred bytes; measured: 64 of 800 B leave some
_CACHED_BLOCKS = 16
_POISONED_TIMES = 3  # measured: after one or two, a block out of the heap may hold some bytes that were between two others
_IN_WORDS = {"device": "the device", "pinned": "pinned memory", "pageable": "pageable memory"}
_CHUNK = 1 << 24  # elements compared at once: 128 MiB of float64


def poison(tensor: torch.Tensor) -> None:
    """Fill `tensor` with NaN, or with a byte pattern where its dtype has none."""
    _fill(bytes_of(tensor), _pattern_of(tensor.dtype))


def is_poison(tensor: torch.Tensor) -> bool:
    """Whether `tensor` holds what `poison` fills it with, and nothing else."""
    return bool((bytes_of(tensor.contiguous()) == _pattern_of(tensor.dtype)).all())


def _pattern_of(dtype: torch.dtype) -> int:
    return _FLOAT_POISON if dtype.is_floating_point else _INTEGER_POISON


def poison_free_blocks(outputs: Mapping[str, Spec], device: torch.device) -> None:
    """Fill free memory of the allocator with NaN, in blocks of the outputs' sizes.

    A step that returns memory which it never wrote then returns NaN, not the right answer of an earlier step.
    The filling is repeated: freed blocks merge with their neighbours, so a later allocation may begin at another address.
    Outputs of one size, of which a training step has dozens, fill the same holes of a heap: each but the first needs few blocks more.
    """
    most = _HEAP_BLOCKS if device.type == "cpu" else _CACHED_BLOCKS
    alike = Counter((spec.where, spec.elements * spec.dtype.itemsize, _pattern_of(spec.dtype)) for spec in outputs.values())
    for _ in range(_POISONED_TIMES):
        blocks = []
        for (where, size, pattern), count in alike.items():
            of_one = max(2, min(most, _POISONED_BYTES // size))
            many = of_one + (count - 1) * min(of_one, _CACHED_BLOCKS)
            blocks += [(empty_in(where, (size,), torch.uint8, device), pattern) for _ in range(many)]
        for block, pattern in blocks:
            _fill(block, pattern)


def take_outputs(returned: object, outputs: Mapping[str, Spec], in_place: Mapping[str, torch.Tensor], file: str) -> dict[str, torch.Tensor]:
    """The tensors that a step returned, by output name; an output that is an `in_place` input is read from that input.

    Raises SideFailure(WRONG_RESULT) where count, type, dtype, shape or layout is not what the workload states.
    """
    names = [name for name in outputs if name not in in_place]
    tensors = (returned,) if isinstance(returned, torch.Tensor) else returned
    if not names and returned is None:
        tensors = ()
    # Not a subclass of either: it could make its elements when the harness asks for them.
    plain = type(tensors) in (tuple, list)
    if not isinstance(tensors, (tuple, list)) or not plain or len(tensors) != len(names):
        found = (
            f"{len(tensors)} value{'' if len(tensors) == 1 else 's'}"
            if isinstance(tensors, (tuple, list)) and plain
            else f"a {type(returned).__name__}"
        )
        expected = f"{len(names)} tensor{'' if len(names) == 1 else 's'}: {', '.join(names)}" if names else "None"
        raise SideFailure(Status.WRONG_RESULT, f"{file}: step returned {found}; expected {expected}")
    taken = dict(zip(names, tensors, strict=True))
    for name, tensor in taken.items():
        problem = _structure_problem(tensor, outputs[name])
        if problem:
            raise SideFailure(Status.WRONG_RESULT, f"{file}: output {name} is {problem}")
    return {name: taken[name] if name in taken else in_place[name] for name in outputs}


def _structure_problem(tensor: object, spec: Spec) -> str:
    if type(tensor) is not torch.Tensor:
        return f"a {type(tensor).__name__}; expected a plain torch.Tensor"
    if own := _own_attributes(tensor):
        return f"a tensor with its own {own[0]}; expected that of torch.Tensor"
    if tensor.dtype != spec.dtype or tuple(tensor.shape) != tuple(spec.shape):
        return f"{tensor.dtype} of shape {tuple(tensor.shape)}; expected {spec.dtype} of shape {tuple(spec.shape)}"
    if tensor.layout != torch.strided:
        return f"of layout {tensor.layout}; expected torch.strided, of contiguous values"
    if not tensor.is_contiguous() or tensor.is_conj() or tensor.is_neg():
        return f"of stride {tensor.stride()}; expected contiguous values"
    return ""


def _own_attributes(tensor: torch.Tensor) -> list[str]:
    """Attributes set on this one tensor that stand in front of torch's: they would run when the harness reads or writes it."""
    return [name for name in vars(tensor) if hasattr(torch.Tensor, name)]


def check_inputs(inputs: Iterable[tuple[str, torch.Tensor]], file: str) -> None:
    """Raises SideFailure(INPUT_MODIFIED) where a side made an input more than a tensor."""
    for name, tensor in inputs:
        if type(tensor) is not torch.Tensor:
            reason = f"{file}: input {name} became a {type(tensor).__name__}; expected a plain torch.Tensor"
            raise SideFailure(Status.INPUT_MODIFIED, reason)
        if own := _own_attributes(tensor):
            raise SideFailure(Status.INPUT_MODIFIED, f"{file}: input {name} got its own {own[0]}; expected that of torch.Tensor")


def check_placement(
    taken: Mapping[str, torch.Tensor],
    outputs: Mapping[str, Spec],
    inputs: Iterable[tuple[str, torch.Tensor]],
    device: torch.device,
    file: str,
) -> None:
    """Raises SideFailure(WRONG_RESULT) where an output is not where it is to be, or shares storage with an input or another output."""
    owned = [(f"input {name}", _extent(tensor)) for name, tensor in inputs]
    for name, tensor in taken.items():
        if problem := _misplaced(tensor, outputs[name].where, device):
            raise SideFailure(Status.WRONG_RESULT, f"{file}: output {name} is {problem}")
        begin, end = _extent(tensor)
        for owner, (other_begin, other_end) in owned:
            if begin < other_end and other_begin < end and owner != f"input {name}":
                raise SideFailure(Status.WRONG_RESULT, f"{file}: output {name} shares storage with {owner}; expected storage of its own")
        owned.append((f"output {name}", (begin, end)))


def _misplaced(tensor: torch.Tensor, where: Where, device: torch.device) -> str:
    """Where an output is and where it should be, if that is not the same. All places of a CPU are its ordinary memory."""
    if where == "device" or device.type == "cpu":
        return "" if tensor.device.type == device.type else f"on {tensor.device}; expected {device}"
    found = place_of(tensor)
    return "" if found == where else f"{'on' if found == 'device' else 'in'} {_IN_WORDS[found]}; expected it in {_IN_WORDS[where]}"


def _extent(tensor: torch.Tensor) -> tuple[int, int]:
    """Where its storage begins and ends: two storages of torch can lie on the same memory."""
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.data_ptr() + storage.nbytes()


def snapshot(tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Copies of `tensors` as they are now."""
    return {name: _clone(tensor.detach()) for name, tensor in tensors.items()}


def snapshot_behind(tensors: Mapping[str, torch.Tensor], device: torch.device) -> dict[str, torch.Tensor]:
    """Copies of `tensors` on `device`, as they are when the current stream has done what it was given."""
    copies = {name: _empty(tensor.shape, dtype=tensor.dtype, device=device) for name, tensor in tensors.items()}
    for name, tensor in tensors.items():
        copy_bits(copies[name], tensor)
    return copies


def changed(before: Mapping[str, torch.Tensor], now: Iterable[tuple[str, torch.Tensor]]) -> list[str]:
    """Names of the tensors that are not bit for bit what they were."""
    return [name for name, tensor in now if name in before and not same_bits(before[name], tensor)]


def copy_bits(to: torch.Tensor, tensor: torch.Tensor) -> None:
    """Copy `tensor` into `to`, on the current stream; from pageable memory when that is done."""
    if to.is_cuda and not tensor.is_cuda and not tensor.is_pinned():
        torch.cuda.current_stream().synchronize()
    _copy(to, tensor.detach(), non_blocking=True)


def same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors of one shape and dtype are equal bit for bit, NaN included."""
    return _equal(bytes_of(a.contiguous()), bytes_of(b.contiguous()).to(a.device))


def compare(
    name: str, found: torch.Tensor, expected: torch.Tensor, tolerance: Precision, rows: torch.Tensor | None = None
) -> tuple[OutputError, str]:
    """How far `found` is from `expected`, in float64, and a sentence on the worst mismatch or "".

    An element matches if |found - expected| <= atol + rtol |expected|; NaN matches NaN but what `poison` fills with, and Inf the same Inf.
    Integers of both sides are compared exactly where both tolerances are 0.
    The relative error is that of values far enough from zero for rtol to matter: nearer, what is lost is told by the absolute one.
    With `rows`, `expected` holds but these rows of the output; all of it must be finite, of which the sentence is the same for any row.
    """
    taken = found if rows is None else found[rows]
    error, wrong, worst = _gaps(taken.detach().reshape(-1), expected.detach().reshape(-1), tolerance)
    where, index = "", worst.index
    if rows is not None:
        error = error.model_copy(update={"rows_checked": len(rows)})
        width = taken.numel() // len(rows)
        where, index = f" in {len(rows)} of {len(found)} rows", int(rows[index // width]) * width + index % width
    if rows is not None and (unset := _not_finite(name, found.detach().reshape(-1), found.shape)):
        return error, unset
    if not wrong:
        return error, _unwritten(name, found.detach(), expected.detach()) if rows is None else ""
    sentence = (
        f"output {name}: {wrong} of {taken.numel()} elements{where} are outside rtol={tolerance.rtol:g}, atol={tolerance.atol:g}; "
        f"the worst, {name}{_coordinates(index, found.shape)}, is {found.reshape(-1)[index].item()}; "
        f"expected {expected.reshape(-1)[worst.index].item()}{worst.in_words}"
    )
    return error, sentence


@dataclass(frozen=True)
class _Worst:
    """The element that is furthest outside the tolerance, of two equals the first: its flat index, and its error over the tolerance."""

    index: int = 0
    times: float = 0.0

    @property
    def in_words(self) -> str:
        """Its error as a multiple of what is allowed; nothing of one that no tolerance allows, or no number has."""
        return f", an error of {self.times:.3g} times the tolerance" if math.isfinite(self.times) else ""


def _worst(x: torch.Tensor, y: torch.Tensor, matches: torch.Tensor, tolerance: Precision) -> tuple[int, float]:
    """Which of some elements that do not all match is furthest outside the tolerance, and how far; Inf where that has no number."""
    times = (x - y).abs() / (tolerance.atol + tolerance.rtol * y.abs())
    times = torch.where(torch.isfinite(times), times, math.inf).masked_fill(matches, -1.0)
    index = int(times.argmax())
    return index, float(times[index])


def _coordinates(index: int, shape: torch.Size) -> str:
    """A flat index as one reads it in code, `[2, 17]`; nothing of the only element of a scalar."""
    places: list[int] = []
    for size in reversed(shape):
        index, place = divmod(index, size)
        places.insert(0, place)
    return str(places) if places else ""


def _gaps(found: torch.Tensor, expected: torch.Tensor, tolerance: Precision) -> tuple[OutputError, int, _Worst]:
    """How far two flat tensors are apart, how many elements are outside the tolerance, and which is the worst."""
    worst_abs = worst_rel = square_gaps = square_sizes = 0.0
    wrong, worst = 0, _Worst()
    exact = tolerance.rtol == 0 and tolerance.atol == 0 and not found.dtype.is_floating_point and not expected.dtype.is_floating_point
    for start in range(0, found.numel(), _CHUNK):
        x, y = found[start : start + _CHUNK], expected[start : start + _CHUNK]
        matches = x.to(torch.int64) == y.to(torch.int64) if exact else _matches(x.double(), y.double(), tolerance)
        gap = (x.double() - y.double()).abs()
        finite = torch.isfinite(gap)
        gap = torch.where(finite, gap, 0)
        size = torch.where(finite, y.double().abs(), 1)
        square_gaps += float(gap.square().sum())
        square_sizes += float(torch.where(finite, y.double(), 0).square().sum())
        worst_abs = max(worst_abs, float(gap.max()))
        far = (size > 0) & (tolerance.rtol * size >= tolerance.atol)
        worst_rel = max(worst_rel, float(torch.where(far, gap / size, 0).max()))
        bad = int((~matches).sum())
        if bad:
            index, times = _worst(x.double(), y.double(), matches, tolerance)
            worst = _Worst(start + index, times) if times > worst.times else worst
        wrong += bad
    rms_rel = math.sqrt(square_gaps / square_sizes) if square_sizes else None
    return OutputError(max_abs=worst_abs, max_rel=worst_rel, mismatched=wrong / found.numel(), rms_rel=rms_rel), wrong, worst


def _unwritten(name: str, found: torch.Tensor, expected: torch.Tensor) -> str:
    """A sentence on the first element that is NaN as expected, but the one that was there before the call, or ""."""
    if not found.dtype.is_floating_point or not torch.isnan(expected.double()).any():
        return ""
    kept = (bytes_of(found.contiguous()).reshape(found.numel(), -1) == _FLOAT_POISON).all(dim=1)
    if not kept.any():
        return ""
    place = f"{name}{_coordinates(int(kept.int().argmax()), found.shape)}"
    return f"output {name}: {place} holds what was there before the call; expected the NaN that the step computes"


def without_value(name: str, expected: torch.Tensor) -> str:
    """A sentence on what a reference returned if not one of its numbers is finite, so that a constant would be right, or ""."""
    if not expected.is_floating_point() or not expected.numel() or torch.isfinite(expected.double()).any():
        return ""
    return (
        f"{name} without a finite value, the first is {expected.reshape(-1)[0].item()}; expected numbers that an answer can be held against"
    )


def _not_finite(name: str, found: torch.Tensor, shape: torch.Size) -> str:
    """A sentence on the first element of a flat tensor that is Inf or NaN, which is also what memory that nobody wrote holds, or ""."""
    for start in range(0, found.numel() if found.dtype.is_floating_point else 0, _CHUNK):
        part = found[start : start + _CHUNK]
        if (unset := (~torch.isfinite(part.double())).nonzero()).numel():
            first = int(unset[0])
            place = f"{name}{_coordinates(start + first, shape)}"
            return f"output {name}: {place} is {part[first].item()}; expected a finite value in every row"
    return ""


def _matches(x: torch.Tensor, y: torch.Tensor, tolerance: Precision) -> torch.Tensor:
    # Written so that NaN on one side alone is a mismatch: NaN <= anything is False.
    close = (x - y).abs() <= tolerance.atol + tolerance.rtol * y.abs()
    close &= torch.isfinite(y)
    return close | (x == y) | (torch.isnan(x) & torch.isnan(y))


def upcast(tree: Any, dtype: torch.dtype) -> Any:
    """`tree` with every floating-point tensor in `dtype`; integers and everything else as they are."""
    return mapped(tree, lambda leaf: leaf.to(dtype) if isinstance(leaf, torch.Tensor) and leaf.dtype.is_floating_point else leaf)

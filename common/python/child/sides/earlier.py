"""Why an answer is wrong, where the reason is that the step did not read its input: it has the answer of another call, or nothing new."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import torch

from common.python.child.sides.compare import compare, is_poison
from common.python.child.sides.inputs import Inputs, leaves
from common.python.pairs.workload import Precision, Workload

Answers = Mapping[str, torch.Tensor]

_SEARCH_S = 10.0  # as long as references of other inputs may take
_BITS = 7.0  # an answer that is another's by chance alone would be one in 2^7
_MOST_NAMED = 3


def why_wrong(
    found: Answers,
    expected: Answers,
    tolerances: Mapping[str, Precision],
    candidates: Iterable[tuple[str, Callable[[], Answers]]],
    rows: torch.Tensor | None = None,
) -> str:
    """The sentence of the first of `candidates`, sentences and answers, that `found` agrees with in all tensors; "" if it is none of them.

    `found` are tensors that disagree with `expected`, each by its own of `tolerances`; of `rows` alone, unless that is None. Candidates
    that take long are not tried.
    """
    begin = time.monotonic()
    try:
        for sentence, answer in candidates:
            if time.monotonic() - begin > _SEARCH_S:
                break
            other = answer()
            agrees = all(not compare(name, tensor, other[name], tolerances[name], rows)[1] for name, tensor in found.items())
            told = (_bits(tensor.dtype, expected[name], other[name], tolerances[name]) for name, tensor in found.items())
            if agrees and sum(told) >= _BITS:
                return sentence
    except torch.OutOfMemoryError:  # the answer is wrong whether or not there is room to find out why
        return ""
    return ""


def _bits(dtype: torch.dtype, expected: torch.Tensor, other: torch.Tensor, tolerance: Precision) -> float:
    """How much agreeing with `other` tells, where it is not what is expected; nothing if all of that is one value, as zeros are."""
    apart = compare("", other, expected, tolerance)[0].mismatched * other.numel()
    if other.numel() > 1 and bool((other == other.reshape(-1)[0]).all()):
        return 0.0
    if not dtype.is_floating_point:
        return apart
    size = float(other.double().abs().nan_to_num(0.0, 0.0, 0.0).mean())
    share = tolerance.rtol + (tolerance.atol / size if size else 1.0)
    return apart * -math.log2(min(0.5, max(share, torch.finfo(torch.float64).eps)))


def what_is_unwritten(found: Answers, *, called_before: bool) -> str:
    """A sentence on tensors that hold what the harness filled them with before the call, and nothing else, or ""."""
    if not all(is_poison(tensor) for tensor in found.values()):
        return ""
    sentence = f"step left {' and '.join(found)} unwritten"
    return f"{sentence}; it may have returned an earlier answer" if called_before else sentence


def live_names(workload: Workload, inputs: Inputs) -> list[str]:
    """The inputs that have new values in every call: no constants, no entries of the shape, and no state that evolves."""
    kept = {*workload.constants, *(workload.in_place if workload.evolves else ())}
    return [name for name, value in inputs.values.items() if name not in kept and any(True for _ in _drawn(value))]


def _drawn(value: object) -> Iterable[object]:
    return (leaf for _, leaf in leaves(value) if not isinstance(leaf, (int, float, str)))


def sentence_of(seed: int, names: Sequence[str], *, of_prepare: bool = False) -> str:
    """What is told of an answer to the values that `names` had with `seed`, when `prepare` was called or in a later call."""
    named = " and ".join(names) if len(names) <= _MOST_NAMED else ""
    unread = f"its input{'s' * (len(names) != 1)} {named}".rstrip()
    if of_prepare:
        return f"this is the answer to what prepare was given: step does not read {unread}"
    return f"this is the answer to the inputs of another call, of seed {seed}: step does not read {unread}"

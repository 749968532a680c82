"""Teeth: a tolerance is worth what it rejects, so each is shown wrong answers that it must not take, and each side's, which it must."""

from __future__ import annotations

import math
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from common.python.child.sides.compare import upcast
from common.python.child.sides.inputs import Inputs
from common.python.child.sides.loader import load_side
from common.python.pairs.workload import call_by_name

ROOT = Path(__file__).resolve().parents[1]
CPU = torch.device("cpu")
TF32_BITS, BF16_BITS = 10, 7  # of mantissa, the leading one not counted


def accepts(tolerance, found, expected):
    """Whether every element of every output is within `tolerance`, a Precision; NaN never is."""
    pairs = [(x.double(), y.double()) for x, y in zip(found, expected, strict=True)]
    return all(bool(((x - y).abs() <= tolerance.atol + tolerance.rtol * y.abs()).all()) for x, y in pairs)


def rounded(tree, bits, mode=torch.round):
    """`tree` with its floating-point tensors at `bits` bits of mantissa, to nearest; `mode=torch.trunc` for toward zero."""
    if isinstance(tree, dict):
        return {key: rounded(value, bits, mode) for key, value in tree.items()}
    if isinstance(tree, (list, tuple)):
        return [rounded(value, bits, mode) for value in tree]
    if not isinstance(tree, torch.Tensor) or not tree.dtype.is_floating_point:
        return tree
    mantissa, exponent = torch.frexp(tree.double())
    return torch.ldexp(mode(mantissa * 2.0 ** (bits + 1)), exponent - bits - 1)


def assert_accepts(workload, side_file, shape):
    """The side in `side_file` is right at `shape`, on values that its inputs were given only after `prepare`, twice."""
    side = load_side(ROOT / side_file, workload, None)
    tolerance = workload.tolerance(Path(side_file).name.split("_")[0])
    with TemporaryDirectory() as folder:
        inputs = Inputs(workload, shape, 1, CPU, Path(folder))
        step = side.prepare(inputs.values, shape)
        for seed in (2, 3):
            inputs.rewrite(seed)
            assert accepts(tolerance, _outputs(step()), _reference(workload, shape, inputs.values)), f"{side_file} at {shape}"
        side.close()


def assert_teeth(workload, shape, *, side="baseline", reduced=None, identity=0.0, bits=TF32_BITS):
    """The tolerance of `side` rejects zeros, a NaN, a shuffle, (1 + 8 rtol) times the reference, less work and lower precision.

    reduced     (input, axis) that the answer sums over: 1/64 of it, at least one entry, is left out by setting it to `identity`
    bits        of mantissa of the precision below the declared one, to which floating-point inputs are rounded
    """
    with TemporaryDirectory() as folder:
        values = Inputs(workload, shape, 1, CPU, Path(folder)).values
        expected = _reference(workload, shape, values)
        wrong = {f"{label} in output {i}": answer for i in range(len(expected)) for label, answer in _spoiled(expected, i, workload, side)}
        if any(output.dtype.is_floating_point for output in expected):
            wrong[f"inputs of {bits} bits"] = _reference(workload, shape, rounded(values, bits))
        if reduced is not None:
            wrong["1/64 of the reduction dropped"] = _reference(workload, shape, _without(values, *reduced, identity))
    tolerance = workload.tolerance(side)
    taken = [label for label, found in wrong.items() if accepts(tolerance, found, expected)]
    assert not taken, f"{tolerance} at {shape} takes {', '.join(taken)}"


def _spoiled(expected, position, workload, side):
    """Wrong answers, with a label each, in which only the output at `position` is wrong."""
    right = expected[position]
    assert right.numel() > 1, "a single element cannot be shuffled; expected a shape with larger outputs"
    answers = {"zeros": torch.zeros_like(right), "a shuffle": right.reshape(-1).roll(1).view_as(right)}
    if right.dtype.is_floating_point:
        answers["a NaN"] = right.clone()
        answers["a NaN"].view(-1)[-1] = torch.nan
    if rtol := workload.tolerance(side).rtol:
        answers["(1 + 8 rtol) times"] = right * (1 + 8 * rtol)
    else:
        answers["one value off by one"] = right.clone()
        answers["one value off by one"].view(-1)[-1] += 1
    for label, answer in answers.items():
        yield label, [*expected[:position], answer, *expected[position + 1 :]]


def _without(values, name, axis, identity):
    changed = values[name].clone()
    changed.narrow(axis, 0, math.ceil(changed.shape[axis] / 64)).fill_(identity)
    return {**values, name: changed}


def _reference(workload, shape, values):
    precise = upcast(values, getattr(torch, workload.reference_in))
    return _outputs(call_by_name(workload.reference, {**shape, **precise}, "reference"))


def _outputs(returned):
    return [returned] if isinstance(returned, torch.Tensor) else list(returned)

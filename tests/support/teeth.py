"""What tests of tolerances share: whether an answer is within one, values of fewer bits, and a Python side held against its reference."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from common.python.child.sides.compare import upcast
from common.python.child.sides.inputs import Inputs
from common.python.child.sides.loader import load_side
from common.python.pairs.workload import call_by_name

ROOT = Path(__file__).resolve().parents[2]
CPU = torch.device("cpu")
TF32_BITS = 10  # of mantissa, the leading one not counted


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
    role = Path(side_file).name.split("_")[0]
    with TemporaryDirectory() as folder:
        inputs = Inputs(workload, shape, 1, CPU, Path(folder))
        step = side.prepare(inputs.values, shape)
        tolerances = [workload.tolerance(role, spec) for spec in inputs.answers().values()]
        for seed in (2, 3):
            inputs.rewrite(seed)
            outputs = zip(tolerances, _outputs(step()), _reference(workload, shape, inputs.values), strict=True)
            assert all(accepts(tolerance, [y], [expected]) for tolerance, y, expected in outputs), f"{side_file} at {shape}"
        side.close()


def _reference(workload, shape, values):
    precise = upcast(values, getattr(torch, workload.reference_in))
    return _outputs(call_by_name(workload.reference, {**shape, **precise}, "reference"))


def _outputs(returned):
    return [returned] if isinstance(returned, torch.Tensor) else list(returned)

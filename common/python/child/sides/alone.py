"""A side of a pair run by itself, for a script: set up on inputs from a seed, compared with the reference, then timed."""

from __future__ import annotations

import math
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from common.python.child.sides.compare import upcast
from common.python.child.sides.inputs import Inputs
from common.python.child.sides.loader import load_side, load_workload
from common.python.child.sides.triton import mend_interpreter
from common.python.errors import BenchmarkError
from common.python.machine.description import set_compile_environment
from common.python.pairs.workload import Precision, Shape, call_by_name


@dataclass(frozen=True)
class Ran:
    """What a side took per call, in ms, and its worst error as a multiple of the workload's tolerance: right up to 1."""

    milliseconds: float
    error: float


def script_device() -> torch.device:
    """A GPU, or a CPU where there is none; then Triton's kernels run in its interpreter. Call it before a side is imported."""
    if torch.cuda.is_available():
        return torch.device("cuda")
    set_compile_environment(interpret=True, caches=None)
    mend_interpreter()
    return torch.device("cpu")


def run_alone(file: Path, shape: Shape, device: torch.device, calls: int = 5) -> Ran:
    """Run the Python side in `file` at `shape`: the median of `calls` calls, after one that compiles and is checked.

    The L2 is not flushed between calls, so a time here is no benchmark's. Raises BenchmarkError where the pair has no `reference`.
    """
    role, pair = file.stem.split("_", 1)
    workload = load_workload(file.with_name(f"workload_{pair}.py"))
    if workload.reference is None:
        raise BenchmarkError(f"{pair}: found no reference; expected one to compare {file.name} with")
    with tempfile.TemporaryDirectory() as folder:
        inputs = Inputs(workload, shape, 0, device, Path(folder))
        expected = call_by_name(workload.reference, {**shape, **upcast(inputs.values, torch.float64)}, f"{pair}: reference")
        side = load_side(file, workload, None)
        step = side.prepare(inputs.values, shape)
        error = _worst(step(), expected, [workload.tolerance(role, spec) for spec in inputs.outputs().values()])
        times = []
        for _ in range(calls):
            _finish(device)
            began = time.perf_counter()
            step()
            _finish(device)
            times.append(1e3 * (time.perf_counter() - began))
        side.close()
    return Ran(statistics.median(times), error)


def _finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _worst(found: Any, expected: Any, tolerances: Sequence[Precision]) -> float:
    """The worst error over `atol + rtol * |expected|`; infinite where one is not a number. Takes a tensor, or a tuple of them."""
    if isinstance(found, torch.Tensor):
        found, expected = (found,), (expected,)
    worst = 0.0
    for one, other, tolerance in zip(found, expected, tolerances, strict=True):
        wanted = other.double()
        room = tolerance.atol + tolerance.rtol * wanted.abs()
        ratio = ((one.double() - wanted).abs() / room.clamp(min=1e-300)).max().item()
        worst = max(worst, float("inf") if math.isnan(ratio) else ratio)
    return worst

"""What is asked of functions, tried once before anything is timed: what is wrong in it is one sentence without the harness's frames."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from common.python.child.sides.inputs import Inputs, require_named, require_repeatable
from common.python.errors import BenchmarkError, SideFailure, Status
from common.python.machine.ceilings import require_work
from common.python.pairs.workload import Shape, Workload
from common.python.project import PROJECT_ROOT

_OURS = str(PROJECT_ROOT / "common" / "python")
RAISED = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    ImportError,
    LookupError,
    NameError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What a function may raise for what it was given; RuntimeError is torch's."""


@contextmanager
def told(who: str, expected: str = "no exception") -> Iterator[None]:
    """Raises BenchmarkError, with the place of `who`'s own line, for what is raised within."""
    try:
        yield
    except RAISED as error:
        raise BenchmarkError(f"{who}: {_raised(error)}; expected {expected}") from error


@contextmanager
def failing(name: str) -> Iterator[None]:
    """Raises SideFailure, of the function of that name, for what is raised within."""
    try:
        yield
    except RAISED as error:
        status = Status.OUT_OF_MEMORY if isinstance(error, (MemoryError, torch.OutOfMemoryError)) else Status.CRASHED
        raise SideFailure(status, f"{name}: {_raised(error)}; expected no exception") from error


def _raised(error: Exception) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    outside = [frame for frame in frames if not frame.filename.startswith(_OURS) and "site-packages" not in frame.filename]
    place = f"{Path(outside[-1].filename).name}:{outside[-1].lineno}: " if outside else ""
    return f"{place}raised {type(error).__name__}: {' '.join(str(error).split())[:300]}"


def require_callable_with(inputs: object, shape: Shape) -> None:
    """Raises BenchmarkError for a function that draws inputs and cannot be called with `rand` and the entries of `shape`."""
    if isinstance(inputs, Workload) or not callable(inputs):
        return
    try:
        signature = inspect.signature(inputs)
    except (TypeError, ValueError):  # of a function of C, which tells nothing
        return
    try:
        signature.bind(None, **shape)
    except TypeError as error:
        names = [*signature.parameters][1:]
        lacking = [name for name in names if name not in shape and signature.parameters[name].default is inspect.Parameter.empty]
        entries = ", ".join(f"{name!r}: ..." for name in lacking)
        expected = f"shape={{{entries}}} beside it" if lacking else "a function of rand and of the entries of shape"
        raise BenchmarkError(f"inputs: {error}; expected {expected}") from None


def tried_inputs(workload: Workload, shape: Shape, seed: int, device: torch.device, folder: Path) -> Inputs:
    """The inputs of functions. Raises BenchmarkError for what cannot be drawn, named or counted as work."""

    def made(where: Path) -> Inputs:
        where.mkdir(exist_ok=True)
        with told("inputs", "named tensors, drawn with rand"):
            return Inputs(workload, shape, seed, device, where)

    inputs = made(folder)
    require_named(workload, inputs)
    require_repeatable(workload, inputs, lambda: made(folder / "again"))
    with told("work"):
        work: Any = workload.work(**shape)
    require_work(work)
    return inputs


def answer_of(function: Callable[[], Any], name: str) -> Any:
    """What a function returns. Raises BenchmarkError for what it raises."""
    with told(name):
        return function()

"""From a path to a step: imports a workload or a Python side, binds a CUDA one, and gives both the same face."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, cast

import torch

from common.python.child.sides.cuda import CudaSide
from common.python.errors import BenchmarkError, SideFailure, Status
from common.python.pairs.directives import read_directives
from common.python.pairs.workload import Shape, Workload, call_by_name

Step = Callable[[], Any]


class Side(Protocol):
    """One side, ready to be set up on inputs."""

    def prepare(self, inputs: Mapping[str, Any], shape: Shape) -> Step:
        """Set up on `inputs`; the returned step may be called any number of times."""

    def workspace(self) -> list[torch.Tensor]:
        """Tensors that hold nothing between calls: outputs and scratch that may be poisoned."""

    def close(self) -> None:
        """Release what `prepare` allocated or opened; the step must not be called any more."""


_folders: set[Path] = set()


def _look_first_in(folder: Path) -> None:
    # Folders may have helpers of the same name; the describer, and a worker with a borrowed baseline, import from several.
    if str(folder) in sys.path:
        sys.path.remove(str(folder))
    sys.path.insert(0, str(folder))
    _folders.add(folder)
    for file in folder.glob("*.py"):
        origin = Path(vars(sys.modules[file.stem]).get("__file__") or "/") if file.stem in sys.modules else file
        if origin != file and origin.parent in _folders:
            del sys.modules[file.stem]


def look_also_in(folders: Iterable[str]) -> None:
    """Find modules in `folders` too, behind all others."""
    sys.path += [folder for folder in folders if folder not in sys.path]


def import_file(path: Path) -> ModuleType:
    """Import a Python file by path; files beside it can be imported by name."""
    _look_first_in(path.parent)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise BenchmarkError(f"{path}: cannot be imported; expected a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def load_workload(path: Path) -> Workload:
    """The WORKLOAD of a workload file. Raises BenchmarkError if it has none; lets through what importing it raises."""
    module = import_file(path)
    if "WORKLOAD" not in vars(module):
        raise BenchmarkError(f"{path.name}: found no WORKLOAD; expected WORKLOAD = Workload(...)")
    if not isinstance(module.WORKLOAD, Workload):
        raise BenchmarkError(f"{path.name}: found WORKLOAD = {type(module.WORKLOAD).__name__}; expected WORKLOAD = Workload(...)")
    return module.WORKLOAD


def load_side(path: Path, workload: Workload, library: Path | None, device: torch.device | None = None) -> Side:
    """The side in the file at `path`; `library` is the built one of a .cu file, whose outputs lie on `device`, or beside its inputs."""
    if library is not None:
        return CudaSide(path, library, workload, read_directives(path), device)
    return PythonSide(path, workload)


class PythonSide:
    """A side whose `prepare` returns its step, or yields it where it has something to close."""

    def __init__(self, path: Path, workload: Workload) -> None:
        self._path = path
        self._workload = workload
        module = import_file(path)
        prepare = vars(module).get("prepare")
        if not callable(prepare):
            raise SideFailure(Status.CRASHED, f"{path.name}: found no function `prepare`; expected prepare(...) that returns step")
        self._prepare = prepare
        self._generator: Generator[Any, None, None] | None = None

    def prepare(self, inputs: Mapping[str, Any], shape: Shape) -> Step:
        """Call the side's `prepare` with the inputs and shape entries that its parameters name, and return its step.

        If an earlier `prepare` yielded its step, that generator is finished first.
        """
        self.close()
        step: Any = call_by_name(self._prepare, {**shape, **inputs}, f"{self._path.name}: prepare")
        if inspect.isgenerator(step):
            self._generator = cast("Generator[Any, None, None]", step)
            step = next(step)
        if not callable(step):
            raise SideFailure(Status.CRASHED, f"{self._path.name}: prepare returned {type(step).__name__}; expected a function, step")
        return step  # type: ignore[no-any-return]

    def workspace(self) -> list[torch.Tensor]:
        """None that the harness knows of; what a step returned is poisoned by its caller."""
        return []

    def close(self) -> None:
        """Run the part of `prepare` behind its yield."""
        if self._generator is not None:
            next(self._generator, None)
        self._generator = None

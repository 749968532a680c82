"""From a path to a step: imports a workload or a Python side, binds a CUDA one, and gives both the same face."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol, cast

import torch

import common
from common.python.child.sides.cuda import CudaSide
from common.python.errors import BenchmarkError, SideFailure, Status
from common.python.pairs.directives import read_directives
from common.python.pairs.revisions import Past
from common.python.pairs.workload import Shape, Workload, call_by_name
from common.python.project import PROJECT_ROOT

Step = Callable[[], Any]


class Side(Protocol):
    """One side, ready to be set up on inputs."""

    def prepare(self, inputs: Mapping[str, Any], shape: Shape) -> Step:
        """Set up on `inputs`; the returned step may be called any number of times."""

    def workspace(self) -> list[torch.Tensor]:
        """Tensors that hold nothing between calls: outputs and scratch that may be poisoned."""

    def close(self) -> None:
        """Release what `prepare` allocated or opened; the step must not be called any more."""


_HARNESS = (str(PROJECT_ROOT / "common" / "python"), str(PROJECT_ROOT / "common" / "__init__.py"))
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


def look_back(past: Past, harness: Collection[str]) -> None:
    """From here on import what the project has as it was: its folders come before those of now, and what they had is forgotten.

    What the workload imported before stays its own, and the modules of `harness` stay what they are. A module that the revision does not
    have is still found where it is now.
    """
    now, then = str(past.now), str(past.then)
    first, *others = sys.path  # the workload's folder, before which that of the side will come
    own = [folder for folder in others if _is_of(f"{folder}/", now)]
    folders = dict.fromkeys([*(then + folder[len(now) :] for folder in own), *map(str, past.folders)])
    place = others.index(own[0]) if own else 0  # so that what comes before the project's folders now still does
    sys.path[:] = [*others[:place], *(folder for folder in folders if Path(folder).is_dir()), first, *others[place:]]
    if _is_of(f"{PROJECT_ROOT}/", now):
        common.__path__.insert(0, f"{then}{str(PROJECT_ROOT)[len(now) :]}/common")
    _forget(lambda file: _is_of(file, now) and Path(then + file[len(now) :]).exists(), harness)


def look_here(past: Past) -> None:
    """Import what the project has now, as before `look_back`."""
    then = str(past.then)
    sys.path[:] = [folder for folder in sys.path if not _is_below(folder, then)]
    common.__path__[:] = [folder for folder in common.__path__ if not _is_below(folder, then)]
    _forget(lambda file: _is_below(file, then))


def imported(past: Past, before: Mapping[str, ModuleType]) -> list[str]:
    """The files of the project that this process imported: all of the other revision, and what is not among the modules of `before`."""
    now, then = str(past.now), str(past.then)
    found = set()
    for name, module in list(sys.modules.items()):
        file = _file_of(module)
        if _is_below(file, then) or (_is_of(file, now) and before.get(name) is not module):
            found.add(file)
    return sorted(found)


def _forget(is_stale: Callable[[str], bool], kept: Collection[str] = ()) -> None:
    """Have these modules, and what lies in packages among them, imported anew by who asks for them next."""
    stale = {name for name, module in list(sys.modules.items()) if is_stale(_file_of(module))}
    gone = [name for name in sys.modules if name not in kept and any(name == each or name.startswith(f"{each}.") for each in stale)]
    modules = {name: sys.modules.pop(name) for name in gone}
    for name, module in modules.items():
        package, _, last = name.rpartition(".")
        if package in sys.modules and vars(sys.modules[package]).get(last) is module:  # it would be found there still
            delattr(sys.modules[package], last)


def _file_of(module: object) -> str:
    return str(vars(module).get("__file__") or "") if isinstance(module, ModuleType) else ""


def _is_of(file: str, folder: str) -> bool:
    """Whether a file below `folder` is one of the project there: of no installed package, and not the harness that runs."""
    return _is_below(file, folder) and "-packages/" not in file and not file.startswith(_HARNESS)


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


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

"""What Triton sides launch and compile to without a GPU: found in a child, and kept under a hash of all that it depends on."""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import sys
from collections.abc import Iterable
from pathlib import Path

import psutil
from pydantic import ValidationError

from common.python.build.cache import is_as_named, keep, keep_by_content, kept
from common.python.build.sass import Kernel, read_code
from common.python.errors import SideFailure
from common.python.machine.description import output_of, variables_of
from common.python.machine.needs import Capability
from common.python.processes.fork_server import Child
from common.python.processes.messages import Ahead, Observed
from common.python.project import PROJECT_ROOT
from common.python.session.planning import Plan
from common.python.session.session import BUILD_CACHE, Session

_PACKAGES = ("torch", "triton")
# Of the variables that Triton, LLVM and ptxas read; all but where Triton has its own cache.
_VARIABLES = ("TRITON_", "LLVM_", "MLIR_", "NVPTX_", "PTXAS_", "DISABLE_PTXAS_", "USE_IR_")
_HARNESS = PROJECT_ROOT / "common"
_BEGAN = psutil.Process().create_time()


class Compilation:
    """A step of one Triton side for one capability: `observed` where it is known, else `why` it is not."""

    memory_bytes = 1 << 30  # that a child may take: a product of tiles takes 0.4

    def __init__(self, plan: Plan, side: str, capability: Capability, session: Session) -> None:
        self.file = plan.file(side)
        self.capability = capability
        self.why = "it was not compiled"
        self._session = session
        self._log = session.logs(plan.target, side) / "log.txt"
        self._request = Ahead(
            workload=str(plan.selection.pair.workload),
            side=str(self.file),
            shape=next(iter(plan.described.timed.values())),
            capability=capability,
            prefix=f"{session.dump_prefix()}_",
            past=session.past,
        )
        self._device = plan.device
        self._triton = session.starts_triton(plan, side)
        self._child: Child | None = None
        is_past = session.past is not None and self.file.is_relative_to(session.past.then)
        self.entry = None if is_past else self._entry()  # what an entry is named after has not what such a side imports
        self.observed = _find(self.entry) if self.entry else None

    def begin(self) -> None:
        """Start a child that finds out. Raises SideFailure."""
        try:
            self._child = self._session.server.fork("worker", self._log, starts=["triton"] if self._triton else [])
        except SideFailure as failure:
            self.why = failure.reason
            raise
        self._child.begin(self._request)

    def finish(self) -> None:
        """Wait for what it finds; that is kept, if all that it depends on is known and is still what it was. Raises SideFailure."""
        assert self._child is not None, "finish without begin"
        try:
            with self._child:
                observed = self._child.finish(self._request, Observed, self._session.limit_s("build"))
        except SideFailure as failure:
            self.why = failure.reason
            raise
        self.observed = observed
        known = {path.resolve() for path in self._sources()}
        if self.entry and self._entry() == self.entry and all(Path(file).resolve() in known for file in observed.imported):
            _keep(self.entry, observed)

    def kill(self) -> None:
        """End the child at once."""
        if self._child is not None:
            self._child.kill()

    def read(self) -> tuple[Kernel, ...]:
        """The kernels of the step that was observed, or none. Raises Unreadable."""
        return read_cubins(self.observed.cubins) if self.observed else ()

    def _entry(self) -> Path | None:
        """Where what is found is kept. None where what it depends on cannot be known: files that changed since this process began, say."""
        try:
            if any(path.stat().st_mtime > _BEGAN for path in _HARNESS.rglob("*.py")):
                return None
            versions = [importlib.metadata.version(name) for name in _PACKAGES]
            texts = [f"{path.name}\n{path.read_text(encoding='utf-8')}" for path in self._sources()]
        except (OSError, UnicodeDecodeError, importlib.metadata.PackageNotFoundError):
            return None
        asked = [Path(self._request.workload).name, self.file.name, self._request.shape, self._request.capability, self._device]
        parts = json.dumps([asked, sys.version, *versions, *_settings(), *texts])
        return BUILD_CACHE / f"{self.file.stem}-{hashlib.sha256(parts.encode()).hexdigest()[:16]}.ahead"

    def _sources(self) -> list[Path]:
        """The code that may take part: all of the harness's, and what lies beside the side and its workload."""
        folders = dict.fromkeys([self.file.parent, Path(self._request.workload).parent])
        beside = [path for folder in folders for path in sorted(folder.glob("*.py"))]
        return [*sorted(_HARNESS.rglob("*.py")), *beside]


def read_cubins(cubins: Iterable[str]) -> tuple[Kernel, ...]:
    """The kernels in files that a child left; their listings are kept. Raises Unreadable."""
    return tuple(kernel for cubin in cubins for kernel in read_code(keep_by_content(Path(cubin), BUILD_CACHE)))


def _settings() -> Iterable[str]:
    """What other tools' settings say of how Triton compiles, with the version of a ptxas that they name."""
    for prefix in _VARIABLES:
        for name, value in sorted(variables_of(prefix).items()):
            if (prefix, name) != ("TRITON_", "CACHE_DIR"):
                yield f"{prefix}{name}={value}"
    for path in sorted(variables_of("TRITON_PTXAS_").values()):
        yield output_of(path, "--version")


def _find(entry: Path) -> Observed | None:
    try:
        observed = Observed.model_validate_json(kept(entry) or "")
    except ValidationError:
        return None
    cubins = [entry.with_name(name) for name in observed.cubins]
    return observed.model_copy(update={"cubins": [str(path) for path in cubins]}) if all(map(is_as_named, cubins)) else None


def _keep(entry: Path, observed: Observed) -> None:
    cubins = [keep_by_content(Path(cubin), entry.parent).name for cubin in observed.cubins]
    keep(entry, observed.model_copy(update={"cubins": cubins}).model_dump_json())

"""A .cu side becomes a shared library once: the library's name is a hash of all that went into it, so a cache cannot be stale."""

from __future__ import annotations

import functools
import hashlib
import importlib.metadata
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from common.python.errors import BenchmarkError, SideFailure, Status
from common.python.machine.needs import Capability, unmet_capability
from common.python.project import PROJECT_ROOT

# Built for where there is no GPU, so that machine code can be checked anywhere.
SUPPORTED: tuple[Capability, ...] = ((9, 0), (10, 0))
# Code for sm_100a does not load on a GB300, whose tensor memory is the same: what needs tcgen05 is built for both.
TENSOR_MEMORY: tuple[Capability, ...] = ((10, 0), (10, 3))

# -cudart static, against 1 MB a library: its symbols stay inside the library, so a side keeps its own cudaGetLastError, whatever CUDA
# torch was built with, and loads where no libcudart is on the path. Memory, streams and the primary context are the driver's: shared.
NVCC_FLAGS = ("-O3", "-std=c++17", "-lineinfo", "-shared", "-cudart", "static", "-Xcompiler", "-fPIC", "-Xptxas", "-v")
# nvcc takes further flags from these, which the key would not see.
_UNHASHED = ("env", "-u", "NVCC_PREPEND_FLAGS", "-u", "NVCC_APPEND_FLAGS")

_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
_INCLUDES_CUTLASS = re.compile(r"^\s*#\s*include\s*<(?:cutlass|cute)/", re.MULTILINE)
_CUTLASS = "nvidia-cutlass"
_ERROR = re.compile(r"\b(?:error|fatal)\s*:|/ld: ")
_SUMMARY = re.compile(r"aborted due to errors|ld returned")


@dataclass(frozen=True)
class Built:
    """A library that is ready to load; `log` is what nvcc printed, `ptxas -v`'s resource lines and warnings, when it was built."""

    library: Path
    architectures: tuple[str, ...]
    seconds: float
    cached: bool
    log: str


class NvccMissing(SideFailure):
    """No nvcc: a CUDA side is skipped, but what its text alone tells can still be checked."""

    def __init__(self) -> None:
        super().__init__(Status.SKIPPED, "no nvcc on PATH or in /usr/local/cuda/bin; expected a CUDA toolkit to build .cu files")


class CutlassMissing(SideFailure):
    """No headers of CUTLASS for a side that includes them; it is skipped, as without nvcc."""

    def __init__(self, source: Path) -> None:
        super().__init__(Status.SKIPPED, f"{source.name} includes CUTLASS; needs the package {_CUTLASS}, without its dependencies")


def architectures_for(needs: Sequence[str], capability: Capability | None) -> tuple[str, ...]:
    """nvcc's names of the architectures to build for: this device's if it meets `needs`, else all supported ones that do.

    A side that cannot run here is thus still built, for the proofs that read its machine code.
    Raises BenchmarkError for a need that is not known, and if no supported architecture meets all of them.
    """
    if capability is not None and not unmet_capability(needs, capability):
        return (_architecture(capability),)
    possible = TENSOR_MEMORY if "tcgen05" in needs else SUPPORTED
    supported = tuple(_architecture(known) for known in possible if not unmet_capability(needs, known))
    if not supported:
        expected = ", ".join(_architecture(known) for known in SUPPORTED)
        raise BenchmarkError(f"needs: found {', '.join(needs)!r}; expected what one of {expected} has")
    return supported


def _architecture(capability: Capability) -> str:
    # From 9.0 on, wgmma, tcgen05 and setmaxnreg exist only in the `a` form, which runs on this very architecture alone.
    return f"{capability[0]}{capability[1]}" + ("a" if capability[0] >= 9 else "")


def find_nvcc() -> Path:
    """Where nvcc is. Raises NvccMissing, which is SKIPPED, if it is nowhere."""
    found = shutil.which("nvcc") or shutil.which("/usr/local/cuda/bin/nvcc")
    if found is None:
        raise NvccMissing
    return Path(found)


def build(source: Path, architectures: Sequence[str], *, flags: Sequence[str] = (), cache: Path, root: Path) -> Built:
    """Build `source` for `architectures` (`90a`) with extra `flags` into folder `cache`, or find it there.

    Quoted includes are looked for beside the including file, then in `root`, the tree of the side, then in this project. What includes
    <cutlass/...> or <cute/...> gets the headers that the package nvidia-cutlass brings.
    A library appears under its name whole or not at all, so builds may race and may be killed. Its machine code is the same wherever the
    tree lies; its line numbers name the files of the tree that it was built from first.
    Raises NvccMissing, CutlassMissing, and SideFailure (BUILD_FAILED) with the first error, its path relative to `root`.
    """
    nvcc = find_nvcc()
    roots = tuple(dict.fromkeys((root.resolve(), PROJECT_ROOT)))
    started = time.perf_counter()
    options = [*NVCC_FLAGS, *flags, *(f"-gencode=arch=compute_{name},code=sm_{name}" for name in architectures)]
    texts = list(_texts(source, roots, set()))
    libraries = [_cutlass(source)] if any(map(_INCLUDES_CUTLASS.search, texts)) else []
    key = _key([*options, _version(nvcc), *(library.version for library in libraries), *texts])
    library, log = cache / f"{source.stem}-{key}.so", cache / f"{source.stem}-{key}.log"
    cached = library.exists()
    if not cached:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache, prefix=".building-") as folder:
            made = Path(folder, library.name)
            includes = [f"-I{path}" for path in roots] + [f"--system-include={path}" for library in libraries for path in library.folders]
            printed = _run([str(nvcc), *options, *includes, "-o", str(made), str(source)], source, root)
            (written := made.with_suffix(".log")).write_text(printed)
            written.replace(log)
            made.replace(library)  # last: a library that is there has its log
    return Built(library, tuple(architectures), time.perf_counter() - started, cached, log.read_text())


@functools.cache
def _version(nvcc: Path) -> str:
    return subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=False).stdout


@dataclass(frozen=True)
class _Headers:
    """A library of headers: its version, and the folders in which its includes are found."""

    version: str
    folders: tuple[Path, ...]


def _cutlass(source: Path) -> _Headers:
    """CUTLASS, for `source`. Raises CutlassMissing."""
    try:
        package = importlib.metadata.distribution(_CUTLASS)
    except importlib.metadata.PackageNotFoundError:
        raise CutlassMissing(source) from None
    folder = Path(str(package.locate_file("cutlass_library/source")))
    return _Headers(f"{_CUTLASS} {package.version}", (folder / "include", folder / "tools/util/include"))


def _key(parts: Sequence[str]) -> str:
    """Hash of contents, not of paths: the same side in another checkout is the same library."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(hashlib.sha256(part.encode()).digest())
    return digest.hexdigest()[:16]


def _texts(path: Path, roots: Sequence[Path], seen: set[Path]) -> Iterator[str]:
    """Text of `path` and, once each, of what it includes in quotes; a file that is not found is left for nvcc to report."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SideFailure(Status.BUILD_FAILED, f"{path}: {error}; expected a readable UTF-8 text file") from error
    seen.add(path.resolve())
    yield text
    for name in _INCLUDE.findall(text):
        found = next((folder / name for folder in (path.parent, *roots) if (folder / name).is_file()), None)
        if found is not None and found.resolve() not in seen:
            yield from _texts(found, roots, seen)


def _run(command: Sequence[str], source: Path, root: Path) -> str:
    result = subprocess.run([*_UNHASHED, *command], capture_output=True, text=True, errors="replace", check=False)
    printed = result.stdout + result.stderr
    if result.returncode:
        raise SideFailure(Status.BUILD_FAILED, _first_error(printed, result.returncode, source, root))
    return printed


def _first_error(printed: str, code: int, source: Path, root: Path) -> str:
    """One sentence for a failed build: the first error, after the file's name unless it says that itself, and how many follow."""
    errors = [line.strip() for line in printed.splitlines() if _ERROR.search(line) and not _SUMMARY.search(line)]
    file = _relative(str(source.resolve()), root)
    first = _relative(" ".join(errors[0].split()), root) if errors else f"nvcc ended with code {code} and named no error"
    sentence = first if file in first else f"{file}: {first}"
    further = len(errors) - 1
    return f"{sentence} (and {further} further error{'s' if further > 1 else ''})" if further > 0 else sentence


def _relative(text: str, root: Path) -> str:
    for folder in (root, root.resolve(), PROJECT_ROOT):
        text = text.replace(f"{folder}/", "")
    return text

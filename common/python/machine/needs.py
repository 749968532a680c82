"""What a `needs:` line may name, and which compute capabilities have it; a feature is a fact about a chip, not a minimum version."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from common.python.errors import BenchmarkError
from common.python.pairs.suggestions import suggestions

Capability = tuple[int, int]


@dataclass(frozen=True)
class Feature:
    """A feature of the GPU's architecture: the capabilities that have it, in words and as a predicate."""

    capabilities: str
    present: Callable[[Capability], bool]


FEATURES: Mapping[str, Feature] = {
    "wgmma": Feature("9.0", lambda capability: capability == (9, 0)),
    "tcgen05": Feature("10.x", lambda capability: capability[0] == 10),
    "tma": Feature("9.0 or above", lambda capability: capability >= (9, 0)),
    "clusters": Feature("9.0 or above", lambda capability: capability >= (9, 0)),
    "fp8": Feature("8.9 or above", lambda capability: capability >= (8, 9)),
    "fp4": Feature("10.0 or above", lambda capability: capability >= (10, 0)),
    "ld_256bit": Feature("10.0 or above", lambda capability: capability >= (10, 0)),
}
# These are properties of the machine around the GPU; the first two are counted, as in `gpus 2`.
COUNTED = ("gpus", "numa")
MACHINE = (*COUNTED, "c2c", "nvme", "nvls", "nvshmem", "rdma", "disk", "io_uring", "gds", "decompression_engine")
ON_GPU = ("gpus", "c2c", "nvls", "nvshmem", "rdma", "gds", "decompression_engine")  # those of them that nothing without a GPU meets
PACKAGE = "package"
"""What stands before the name of an optional Python package, as Python imports it: `package kvikio`."""


def parse_need(need: str) -> tuple[str, int]:
    """Name and count of one entry of a `needs:` line; the count is 1 for what is not counted, and a package's name is the whole entry.

    Raises BenchmarkError for a name that is not known and for a count that is missing, unexpected or not a positive integer.
    """
    name, _, count = need.partition(" ")
    if name == PACKAGE:
        _require_package(need)
        return need, 1
    known = (*FEATURES, *MACHINE, PACKAGE)
    if name not in known:
        near = suggestions(need, known) or suggestions(name, known)
        raise BenchmarkError(f"needs: found {need!r}; expected {' or '.join(near) or 'one of ' + ', '.join(known)}")
    if name not in COUNTED:
        if count:
            raise BenchmarkError(f"needs: found {need!r}; expected {name!r} without a count")
        return name, 1
    if not (count.isascii() and count.isdigit() and int(count) > 0):
        raise BenchmarkError(f"needs: found {need!r}; expected a count, as in '{name} 2'")
    return name, int(count)


def package_of(need: str) -> str:
    """The Python package that a need names, as Python imports it; "" for a need of another kind."""
    kind, _, name = need.partition(" ")
    return name if kind == PACKAGE else ""


def unmet_packages(needs: Sequence[str]) -> str:
    """Which optional Python packages among `needs` are not installed, in one sentence; empty if all are. Nothing is imported of them."""
    missing = [name for name in dict.fromkeys(map(package_of, needs)) if name and not _is_installed(name)]
    if not missing:
        return ""
    return f"needs the Python package{'s' if len(missing) > 1 else ''} {', '.join(missing)}; not installed"


def _require_package(need: str) -> None:
    if not all(part.isidentifier() for part in package_of(need).split(".")):
        raise BenchmarkError(f"needs: found {need!r}; expected a package as Python imports it, as in '{PACKAGE} kvikio'")


def _is_installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # the package around it
        return False


def unmet_capability(needs: Sequence[str], capability: Capability) -> str:
    """Why a GPU of this compute capability does not meet `needs`, in one sentence; empty if it does.

    Says nothing of the machine around the GPU. Raises BenchmarkError for a need that is not known.
    """
    for name in [parse_need(need)[0] for need in needs]:
        if name in FEATURES and not FEATURES[name].present(capability):
            return f"needs compute capability {FEATURES[name].capabilities} ({name}); this is {capability[0]}.{capability[1]}"
    return ""

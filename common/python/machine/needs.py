"""What a `needs:` line may name, and which compute capabilities have it; a feature is a fact about a chip, not a minimum version."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from common.python.errors import BenchmarkError

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
MACHINE = (*COUNTED, "c2c", "nvme", "nvls", "nvshmem", "rdma")


def parse_need(need: str) -> tuple[str, int]:
    """Name and count of one entry of a `needs:` line; the count is 1 for what is not counted.

    Raises BenchmarkError for a name that is not known and for a count that is missing, unexpected or not a positive integer.
    """
    name, _, count = need.partition(" ")
    known = (*FEATURES, *MACHINE)
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        raise BenchmarkError(f"needs: found {need!r}; expected {near[0] if near else 'one of ' + ', '.join(known)}")
    if name not in COUNTED:
        if count:
            raise BenchmarkError(f"needs: found {need!r}; expected {name!r} without a count")
        return name, 1
    if not (count.isascii() and count.isdigit() and int(count) > 0):
        raise BenchmarkError(f"needs: found {need!r}; expected a count, as in '{name} 2'")
    return name, int(count)


def unmet_capability(needs: Sequence[str], capability: Capability) -> str:
    """Why a GPU of this compute capability does not meet `needs`, in one sentence; empty if it does.

    Says nothing of the machine around the GPU. Raises BenchmarkError for a need that is not known.
    """
    for name in [parse_need(need)[0] for need in needs]:
        if name in FEATURES and not FEATURES[name].present(capability):
            return f"needs compute capability {FEATURES[name].capabilities} ({name}); this is {capability[0]}.{capability[1]}"
    return ""

"""NUMA nodes, from sysfs."""

from __future__ import annotations

import ctypes
from pathlib import Path

_CORES = Path("/sys/devices/system/cpu")


def nodes_of_this_core(cores: Path = _CORES) -> list[int]:
    """The node of the core that runs this thread now, where new memory of the host comes from; none where the kernel tells of none."""
    core = ctypes.CDLL(None).sched_getcpu()
    return [int(path.name.removeprefix("node")) for path in (cores / f"cpu{core}").glob("node[0-9]*")]

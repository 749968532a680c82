"""Plans, machines and standards for tests of what is decided before and after a measurement; none of it is ever run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from common.python.gate.verdicts import Standards
from common.python.machine.description import Gpu, Machine
from common.python.pairs.directives import Directives
from common.python.pairs.discovery import Pair
from common.python.pairs.targets import Selection
from common.python.processes.messages import Described
from common.python.session.planning import Plan, gpus_for
from common.python.settings import Settings

H200 = Gpu(index=0, name="NVIDIA H200", uuid="GPU-of-a-test", capability=(9, 0), memory_bytes=141 << 30, driver="580.1")
WITHOUT_GPU = Machine(cpu="c", architecture="x86_64", cores=2, numa_nodes=1, memory_bytes=1 << 34, kernel="6", python="3.11")
WITH_GPU = WITHOUT_GPU.model_copy(update={"gpus": (H200,)})

SHAPE = {"n": 1024, "causal": True, "eps": 1.0}  # that of the factories' timings


def a_plan(folder: Path, name: str = "transpose", sides: tuple[str, ...] = ("baseline", "optimized"), **changes: Any) -> Plan:
    """A pair in `folder`, timed by the device's clock at one shape."""
    suffix = changes.pop("suffix", ".py")
    files = {side: folder / f"{side}_{name}{suffix}" for side in ("baseline", "optimized")}
    pair = Pair(f"ch07:{name}", "ch07", name, folder / f"workload_{name}.py", files)
    conditions: dict[str, Any] = {"goal": "time", "clock": "device", "cache": "cold", "serving": False, "places": {}}
    conditions |= {key: changes.pop(key) for key in conditions if key in changes}
    work = {"work": {1: {"default": {}}}, "cpu_at": {}, "cpu_work": {1: {}}}
    described = Described(nonce="", place="device", timed={"default": SHAPE}, check_at=[SHAPE], mismatch="", **conditions, **work)
    fields: dict[str, Any] = {
        "selection": Selection(pair, sides),
        "described": described,
        "workload_directives": Directives(),
        "side_directives": dict.fromkeys(sides, Directives()),
        "device": "cuda",
        "timed": {"default": SHAPE},
        "work": {"default": {}},
        "skip": "",
        "digests": dict.fromkeys(sides, ""),
        "gpus": WITH_GPU.gpus,
    }
    return Plan(**fields | changes)


def standards_for(*plans: Plan, machine: Machine = WITH_GPU, **choices: Any) -> Standards:
    """What `plans` are held to on `machine`."""
    here = [replace(plan, gpus=gpus_for((plan.workload_directives, *plan.side_directives.values()), machine)) for plan in plans]
    return Standards(Settings(**choices), machine, here)

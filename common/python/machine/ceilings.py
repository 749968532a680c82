"""What a machine can do at most, as `peak` measured it: the documents, one file a GPU and one for the CPU, and who may use them."""

from __future__ import annotations

import difflib
import hashlib
import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal, Self, SupportsFloat

from pydantic import ValidationError, model_validator

from common.python.errors import BenchmarkError
from common.python.machine.description import Gpu, Machine, cache_folder
from common.python.project import IS_CHECKOUT, program
from common.python.results import SCHEMA_VERSION, Document, Interval, Run
from common.python.storage import ARTIFACTS, document_text, read_document, write_whole

DeviceName = Literal["cuda", "cpu"]
ALL_REDUCE = "all_reduce"
"""The ceiling that it takes a process a GPU to measure."""

WORK_KEYS = (
    *("dram_read", "dram_write", "dram_copy", "dram_triad", "l2_read", "l2_write", "l2_copy", "shared"),
    *("fp32", "fp32_fma", "fp64", "tf32", "bf16", "bf16_mma_sync", "fp16", "fp8", "fp4"),
    *("h2d", "h2d_pageable", "d2h", "d2h_pageable", "peer", "peer_out", "peer_in", "peer_both", ALL_REDUCE),
    *("launch", "graph_launch", "graph_node", "storage_read"),
)
"""What `work` may name: every ceiling that `peak` measures on some machine, and `peer`, which is the faster of two."""

Unit = Literal["bytes/s", "flop/s", "s"]
Mode = Literal["burst", "sustained"]
L2State = Literal["clean", "dirty", "hot", "none"]


class Ceiling(Document):
    """What a machine can do at most, by one measure of `peak`: the median of `samples` samples and its 95 % interval.

    `l2` is the state of the L2 before each sample: clean is the state in which sides are timed; none where it plays no part.
    `sm_clock_hz` is the clock that the SMs held; None where none was stamped. `how` names the variant kept.
    """

    name: str
    value: Interval
    unit: Unit
    mode: Mode
    l2: L2State
    samples: int
    sm_clock_hz: float | None
    how: str

    @model_validator(mode="after")
    def _is_positive(self) -> Self:
        if self.value.low <= 0:
            raise ValueError(f"ceiling {self.name} of {self.value.estimate} {self.unit}; a ceiling is positive")
        return self


class MachineCeilings(Document):
    """The ceilings of one GPU, or of one core of a CPU: artifacts/machines/<machine>.json.

    `cache_bytes` is the size of the L2, or of a CPU's last cache. Clocks (MHz) and power (W) are the limits they were measured under;
    `missing` says of every ceiling that was not measured why.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    machine: str
    name: str
    device: Literal["cuda", "cpu"]
    driver: str
    torch: str
    measured: str
    seconds: float
    sm_clock_max_mhz: int | None
    memory_clock_max_mhz: int | None
    power_limit_w: float | None
    cache_bytes: int
    ceilings: tuple[Ceiling, ...]
    missing: dict[str, str]
    notes: tuple[str, ...] = ()


MACHINES = (ARTIFACTS if IS_CHECKOUT else cache_folder()) / "machines"
"""An installed wheel may lie where its user cannot write, and its folder goes with the next version."""


def require_work(work: object, where: str = "") -> None:
    """Raise BenchmarkError unless `work` has amounts, finite and not negative, of what `peak` measures; `where` ends what was found."""
    if not isinstance(work, Mapping):
        raise BenchmarkError(f"work gives a {type(work).__name__}{where}; expected a dict of ceilings to amounts")
    for name, amount in work.items():
        if isinstance(amount, bool) or not isinstance(amount, SupportsFloat) or not 0 <= float(amount) < math.inf:
            raise BenchmarkError(f"work gives {name}={amount!r}{where}; expected a finite amount that is not negative")
        if name not in WORK_KEYS:
            near = difflib.get_close_matches(str(name), WORK_KEYS, n=1)
            expected = near[0] if near else f"one of {', '.join(WORK_KEYS)}"
            raise BenchmarkError(f"work names {name!r}{where}, which is no ceiling; expected {expected}")


def machine_key(machine: Machine, gpu: Gpu | None) -> str:
    """The name under which ceilings are kept: a GPU's uuid, or what a CPU's model comes to."""
    return gpu.uuid if gpu else f"cpu-{hashlib.sha256(machine.cpu.encode()).hexdigest()[:12]}"


def ceilings_path(key: str) -> Path:
    """The path of the file in which the ceilings of the machine with this `machine_key` are kept."""
    return MACHINES / f"{key}.json"


def keep_ceilings(ceilings: MachineCeilings) -> Path:
    """Write `ceilings` in place of what was kept for that machine, and say where. Raises BenchmarkError."""
    path = ceilings_path(ceilings.machine)
    write_whole(path, document_text(ceilings))
    return path


def kept_ceilings(machine: Machine, device: DeviceName) -> tuple[MachineCeilings | None, str]:
    """The ceilings of the first GPU, or of the CPU; None, with a sentence that says why, if none are kept or they no longer hold.

    Raises BenchmarkError for a file that is not what `peak` writes.
    """
    gpu = machine.gpus[0] if device == "cuda" else None
    key, advice = machine_key(machine, gpu), f"no shares of the ceiling: run `{program()} peak`"
    path = ceilings_path(key)
    if not path.is_file():
        return None, f"no ceilings kept for {gpu.name if gpu else machine.cpu}, so {advice}"
    kept = read_document(path, MachineCeilings)
    if (kept.machine, kept.device) != (key, device):
        raise BenchmarkError(f"{path}: ceilings of {kept.device} {kept.machine}; expected those of {device} {key}")
    if gpu and (changed := _changes(kept, gpu)):
        return None, f"the ceilings kept for {gpu.name} were measured with {', '.join(changed)}, so {advice}"
    return kept, ""


def fresh_ceilings(machine: Machine, gpu: Gpu | None, hours: float) -> MachineCeilings | None:
    """What is kept of `gpu`, or of the CPU, if it was measured at most `hours` ago, as everything is now; else None.

    Raises BenchmarkError for a file that is not what `peak` writes.
    """
    path = ceilings_path(machine_key(machine, gpu))
    if not path.is_file():
        return None
    kept = read_document(path, MachineCeilings)
    age = datetime.now().astimezone() - datetime.fromisoformat(kept.measured)
    is_fresh = timedelta() <= age <= timedelta(hours=hours) and kept.torch == machine.packages["torch"]
    return kept if is_fresh and not (gpu and _changes(kept, gpu)) else None


def ceilings_of(run: Run) -> dict[str, MachineCeilings]:
    """The ceilings that the rows of `run` were held against, by device. Raises BenchmarkError if what it holds are no ceilings."""
    found = {}
    for device, kept in run.ceilings.items():
        try:
            found[device] = MachineCeilings.model_validate(kept)
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]["msg"]
            raise BenchmarkError(f"run.json of {run.run_id}: ceilings of {device}: {problem}; expected what `peak` keeps") from error
    return found


def _changes(kept: MachineCeilings, gpu: Gpu) -> list[str]:
    """What is not as it was when the ceilings were measured: the driver, or a limit that can change what the GPU reaches."""
    then_and_now = {
        "driver": (kept.driver, gpu.driver),
        "an SM clock of at most (MHz)": (kept.sm_clock_max_mhz, gpu.sm_clock_max_mhz),
        "a memory clock of at most (MHz)": (kept.memory_clock_max_mhz, gpu.memory_clock_max_mhz),
        "a power limit (W) of": (kept.power_limit_w, gpu.power_limit_w),
    }
    return [f"{name} {then} and not {now}" for name, (then, now) in then_and_now.items() if then != now]

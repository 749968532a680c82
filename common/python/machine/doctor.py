"""What is installed, what is missing, and what would make numbers bad: it looks and advises, and changes nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, Self

import psutil
import pynvml
from pydantic import model_validator

from common.python.machine.description import (
    PROFILER_VARIABLES,
    Gpu,
    Machine,
    answer,
    find_tool,
    harness_text,
    nvml_session,
    output_of,
    version_of,
)
from common.python.machine.page_cache import cached_pages
from common.python.machine.telemetry import REASONS, THROTTLING
from common.python.results import Document

Level = Literal["ok", "warn", "bad"]

_TORCH = """
import json, torch
seen = torch.cuda.device_count() if torch.cuda.is_available() else 0
print(json.dumps({"version": torch.__version__, "built_for": torch.version.cuda or "(none)", "seen": seen}))
"""

_TOOLS = {
    "nvcc": "install the CUDA toolkit; until then CUDA sides are SKIPPED",
    "g++": "install a C++ compiler; nvcc and torch.compile need one",
    "nvdisasm": "pip install nvidia-cuda-nvdisasm; until then proofs in machine code are unchecked",
    "cuobjdump": "pip install nvidia-cuda-cuobjdump; until then proofs in machine code are unchecked",
}
_GPU_TOOLS = {
    "ncu": "install Nsight Compute; until then --profile reads no counters",
    "compute-sanitizer": "install the CUDA toolkit's compute-sanitizer; until then --sanitize has no tool",
}
_PROFILERS = {"nsys", "ncu", "nv-hostengine", "dcgm-exporter"}
_GIB = 1 << 30


class Finding(Document):
    """One thing looked at. `warn`: numbers will be wider, or something cannot be had; `bad`: measure nothing here now."""

    name: str
    level: Level
    found: str
    advice: str

    @model_validator(mode="after")
    def _is_useful(self) -> Self:
        if (self.level == "ok") == bool(self.advice):
            raise ValueError(f"finding {self.name!r}: level {self.level} with advice {self.advice!r}; every level but ok has one")
        return self


def examine(machine: Machine, root: Path, nvml: Any = pynvml) -> tuple[Finding, ...]:
    """All there is to say: what is installed, then `fitness`. Takes seconds: children import torch and try nsys."""
    now = fitness(machine, root, nvml)  # before the trial of nsys, whose own daemon outlives it
    return (*_installed(machine), *now)


def fitness(machine: Machine, root: Path, nvml: Any = pynvml) -> tuple[Finding, ...]:
    """What would make numbers bad now, for before a run; artifacts will lie under `root`, `nvml` is pynvml or its like."""
    with nvml_session(nvml) as failure:
        gpus = () if failure else tuple(finding for gpu in machine.gpus for finding in _gpu(gpu, nvml))
    folder = next(place for place in (root.resolve(), *root.resolve().parents) if place.is_dir())
    return (
        _driver(machine),
        *gpus,
        outside_profilers(machine.variables, {process.info["name"] for process in psutil.process_iter(["name"])}),
        governor(),
        _smt(),
        load(os.getloadavg()[0], machine.cores),
        *container(machine),
        _space("disk", folder, least_gib=5.0),
        _space("shared memory", Path("/dev/shm"), least_gib=1.0),
        page_cache(folder),
    )


def unfit(findings: Iterable[Finding]) -> str:
    """Why nothing should be measured here now, in one sentence; "" if nothing found is that bad."""
    return "; ".join(f"{finding.name}: {finding.found}; {finding.advice}" for finding in findings if finding.level == "bad")


def _judged(name: str, found: str, advice: str = "", level: Level = "warn") -> Finding:
    """`level` if there is something to advise, else ok."""
    return Finding(name=name, level=level if advice else "ok", found=found, advice=advice)


# --- what is installed


def _installed(machine: Machine) -> Iterator[Finding]:
    yield _judged("harness", harness_text(machine.project))
    yield _judged("python", f"{machine.python} on {machine.cores} cores of {machine.cpu}")
    yield _torch(machine)
    yield _present("triton", machine.packages.get("triton", ""), "pip install triton; until then Triton sides fail")
    for name, advice in (_TOOLS | _GPU_TOOLS if machine.gpus else _TOOLS).items():
        path = find_tool(name)
        yield _present(name, f"{version_of(name)} at {path}" if path else "", advice)
    if machine.gpus:
        yield counters(Path("/proc/driver/nvidia/params"), is_root=os.geteuid() == 0)
        yield _nsys()


def _present(name: str, found: str, advice: str) -> Finding:
    return _judged(name, found) if found else _judged(name, "missing", advice)


def _torch(machine: Machine) -> Finding:
    printed = output_of(sys.executable, "-P", "-c", _TORCH, timeout_s=120.0)
    if not printed:
        advice = "install torch 2.11 or newer, and see that `python -c 'import torch'` works"
        return _judged("torch", f"{machine.packages.get('torch', 'none')}, and it cannot be imported", advice, "bad")
    torch = json.loads(printed.splitlines()[-1])
    found = f"{torch['version']}, CUDA {torch['built_for']}, sees {torch['seen']} of {len(machine.gpus)} GPUs"
    advice = f"install a build of torch that a driver for CUDA {machine.cuda_driver} serves; until then GPUs stay unused"
    return _judged("torch", found, "" if torch["seen"] == len(machine.gpus) else advice)


def counters(parameters: Path, *, is_root: bool) -> Finding:
    """Whether ncu may read the hardware counters, by the driver's file of `parameters`."""
    if is_root or not parameters.exists() or "RmProfilingAdminOnly: 1" not in parameters.read_text():
        return _judged("counters", "ncu may read them")
    return _judged("counters", "the driver keeps them for root", "profile as root, or have NVreg_RestrictProfilingToAdminUsers=0 set")


def _nsys() -> Finding:
    nsys = find_tool("nsys")
    if nsys is None:
        return _present("nsys", "", "install Nsight Systems; until then --profile traces with torch.profiler")
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "trial.nsys-rep"
        capture = ("--sample=none", "--cpuctxsw=none", "--trace=nvtx", "--output", str(report.with_suffix("")))
        output_of(str(nsys), "profile", *capture, sys.executable, "-c", "", timeout_s=60.0)
        if report.exists():
            return _judged("nsys", f"{version_of('nsys')} at {nsys}; a trial capture imports")
    lacking = importer_lacks(nsys)
    blame = f"its importer lacks {', '.join(lacking)}" if lacking else "and its importer's libraries do not say why"
    return _judged("nsys", f"{nsys}: a trial capture leaves no report, {blame}", "install what it lacks; until then torch.profiler traces")


def importer_lacks(nsys: Path) -> tuple[str, ...]:
    """The shared libraries without which this nsys records and then writes no report: its importer lies in a sibling of its folder."""
    return tuple(name for importer in nsys.resolve().parents[1].glob("*/QdstrmImporter") for name in missing_libraries(importer))


def missing_libraries(program: Path) -> tuple[str, ...]:
    """The shared libraries that `program` needs and the loader, looking in the program's own folder too, does not find."""
    listed = output_of("env", f"LD_LIBRARY_PATH={program.parent}", "ldd", str(program))
    return tuple(re.findall(r"^\s*(\S+) => not found", listed, re.MULTILINE))


# --- a GPU


def _driver(machine: Machine) -> Finding:
    if machine.gpus:
        names = ", ".join(gpu.name for gpu in machine.gpus)
        return _judged("NVML", f"{names}; driver {machine.gpus[0].driver} for CUDA up to {machine.cuda_driver}")
    advice = "in a container, allow NVIDIA_DRIVER_CAPABILITIES=compute,utility; elsewhere see that nvidia-smi works"
    why = "; ".join(machine.notes) or "no GPU"
    hidden = Path("/dev/nvidiactl").exists() and "CUDA_VISIBLE_DEVICES" not in machine.variables
    return _judged("NVML", why, advice if hidden else "")


def _gpu(gpu: Gpu, nvml: Any) -> Iterator[Finding]:
    handle = answer(nvml, nvml.nvmlDeviceGetHandleByUUID, gpu.uuid)
    if handle is None:
        yield _judged(f"GPU {gpu.index}", "it does not answer", "see what nvidia-smi and dmesg say of it", "bad")
        return
    yield _other_processes(f"GPU {gpu.index} processes", handle, nvml)
    for what, check in (
        ("memory", _memory_errors),
        ("PCIe link", _link),
        ("power cap", _power_cap),
        ("persistence", _persistence),
        ("clocks", _clocks),
        ("MIG", _mig),
    ):
        found, advice = check(handle, nvml)
        yield _judged(f"GPU {gpu.index} {what}", found, advice)


def _other_processes(name: str, handle: Any, nvml: Any) -> Finding:
    ours = {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}
    others = [process.pid for process in answer(nvml, nvml.nvmlDeviceGetComputeRunningProcesses, handle) or () if process.pid not in ours]
    if others:
        return _judged(name, f"process {', '.join(map(str, others))} computes on it", "wait for it, stop it or take another GPU", "bad")
    if _stays_busy(handle, nvml):
        return _judged(name, "it is busy with work that is not visible from here", "find the container that shares it", "bad")
    drawing = [process.pid for process in answer(nvml, nvml.nvmlDeviceGetGraphicsRunningProcesses, handle) or ()]
    advice = "end the desktop session, or expect wider intervals" if drawing else ""
    return _judged(name, f"process {', '.join(map(str, drawing))} draws on it" if drawing else "none but ours", advice)


def _stays_busy(handle: Any, nvml: Any) -> bool:
    """Whether it is used now and a second later: NVML's figure is an average, in which an ended run still shows."""
    for wait_s in (1.0, 0.0):
        rates = answer(nvml, nvml.nvmlDeviceGetUtilizationRates, handle)
        if rates is None or rates.gpu < 10:
            return False
        time.sleep(wait_s)
    return True


def _memory_errors(handle: Any, nvml: Any) -> tuple[str, str]:
    ecc = answer(nvml, nvml.nvmlDeviceGetEccMode, handle)
    rows = answer(nvml, nvml.nvmlDeviceGetRemappedRows, handle)
    kind, since_reset = nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
    uncorrected = answer(nvml, nvml.nvmlDeviceGetTotalEccErrors, handle, kind, since_reset) or 0
    corrected_rows, uncorrected_rows, pending, failed = (0, 0, 0, 0) if rows is None else rows
    mode = "not reported" if ecc is None else "on" if ecc[0] else "off"
    found = f"ECC {mode}, {uncorrected} uncorrected errors, {corrected_rows + uncorrected_rows} rows remapped"
    if failed:
        return f"{found}, and a remapping failed", "have the GPU replaced"
    if pending or uncorrected:
        return f"{found}, {'and a' if pending else 'no'} remapping is pending", "have the machine's owner reset the GPU"
    return found, ""


def _link(handle: Any, nvml: Any) -> tuple[str, str]:
    width = answer(nvml, nvml.nvmlDeviceGetCurrPcieLinkWidth, handle)
    widest = answer(nvml, nvml.nvmlDeviceGetMaxPcieLinkWidth, handle)
    if width is None or widest is None:
        return "not reported", ""
    advice = "reseat the card or take another slot: host copies run at a share of the link" if width < widest else ""
    return f"x{width} of x{widest}", advice


def _power_cap(handle: Any, nvml: Any) -> tuple[str, str]:
    limit_mw = answer(nvml, nvml.nvmlDeviceGetEnforcedPowerLimit, handle)
    default_mw = answer(nvml, nvml.nvmlDeviceGetPowerManagementDefaultLimit, handle)
    if limit_mw is None or default_mw is None:
        return "not reported", ""
    advice = "compare only with results under the same cap" if limit_mw < default_mw else ""
    return f"{limit_mw / 1000:.0f} W, {default_mw / 1000:.0f} by default", advice


def _persistence(handle: Any, nvml: Any) -> tuple[str, str]:
    mode = answer(nvml, nvml.nvmlDeviceGetPersistenceMode, handle)
    if mode is None or mode:
        return "not reported" if mode is None else "on", ""
    return "off", "have nvidia-persistenced started: without it every first call waits for the driver"


def _clocks(handle: Any, nvml: Any) -> tuple[str, str]:
    reasons = answer(nvml, nvml.nvmlDeviceGetCurrentClocksEventReasons, handle)
    if reasons is None:
        return "what limits them is not reported", ""
    found = ", ".join(name for bit, name in REASONS.items() if reasons & bit) or "nothing limits them"
    return found, "see to its cooling and power: throttled samples are discarded" if reasons & THROTTLING else ""


def _mig(handle: Any, nvml: Any) -> tuple[str, str]:
    modes = answer(nvml, nvml.nvmlDeviceGetMigMode, handle)
    if modes is None or not modes[0]:
        return "not available" if modes is None else "off", ""
    return "on", "compare only with results of the same slice: ceilings and expectations are those of a whole GPU"


# --- the host


def outside_profilers(variables: Mapping[str, str], processes: Iterable[str]) -> Finding:
    """Profilers that hold the GPU's counters, or that would slow what is timed: by `variables` and the names of running `processes`."""
    seen = [name for name in PROFILER_VARIABLES if variables.get(name)] + sorted(_PROFILERS.intersection(processes))
    advice = "end it, or pause its counters (dcgmi profile --pause); it slows what is timed or keeps ncu out" if seen else ""
    return _judged("profilers", ", ".join(seen) or "none at work", advice)


def governor(system: Path = Path("/sys/devices/system/cpu")) -> Finding:
    """The CPU's frequency governor, as `system` tells it."""
    file = system / "cpu0/cpufreq/scaling_governor"
    name = file.read_text().strip() if file.exists() else ""
    advice = f"have the performance governor set: under {name} host-clock rows and launches vary more"
    return _judged("CPU governor", name or "not ours to see", advice if name not in {"", "performance"} else "")


def _smt() -> Finding:
    file = Path("/sys/devices/system/cpu/smt/active")
    state = {"1": "on; cores come in pairs", "0": "off"}.get(file.read_text().strip() if file.exists() else "", "not reported")
    return _judged("SMT", state)


def load(average: float, cores: int) -> Finding:
    """Whether the last minute's load `average` leaves a core to the side that is timed and one to its parent."""
    advice = "wait until other work ends, or expect wider intervals" if average > max(1.0, cores - 2.0) else ""
    return _judged("load", f"{average:.1f} on {cores} cores", advice)


def container(machine: Machine, groups: Path = Path("/sys/fs/cgroup")) -> Iterator[Finding]:
    """The memory and the cores that control groups leave to this process."""
    memory = _first_line(groups / "memory.max", groups / "memory/memory.limit_in_bytes")
    limit = min(int(memory) if memory.isdigit() else machine.memory_bytes, machine.memory_bytes)
    advice = "give the container 8 GiB or more: a side beyond it is killed" if limit < 8 * _GIB else ""
    yield _judged("memory", f"{limit / _GIB:.0f} of {machine.memory_bytes / _GIB:.0f} GiB may be used", advice)
    quota, _, period = _first_line(groups / "cpu.max").partition(" ")
    cores = int(quota) / int(period) if quota.isdigit() else machine.cores
    advice = "lift the container's CPU quota: beyond it the kernel stops every thread for milliseconds" if cores < machine.cores else ""
    yield _judged("cores", f"{cores:g} of {machine.cores} may be used", advice)


def _first_line(*files: Path) -> str:
    return next((file.read_text().strip() for file in files if file.exists()), "")


def _space(name: str, folder: Path, least_gib: float) -> Finding:
    free = shutil.disk_usage(folder).free / _GIB
    advice = f"free {least_gib:g} GiB or more: samples, profiles and outputs are written there" if free < least_gib else ""
    return _judged(name, f"{free:.1f} GiB free at {folder}", advice)


def page_cache(folder: Path) -> Finding:
    """Whether a file in `folder` can be dropped from the page cache, tried on one of 64 pages: else every read of it is hot."""
    page, pages = os.sysconf("SC_PAGE_SIZE"), 64
    advice = "put the files of storage targets on another file system; cold reads cannot be had here"
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(page * pages))
            file.flush()
            os.fsync(file)  # a dirty page is not dropped
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            kept = cached_pages(file.fileno())
    except OSError as error:
        return _judged("page cache", f"a file in {folder} cannot be dropped from it, or not be seen to: {error.strerror}", advice)
    return _judged("page cache", f"{kept} of {pages} pages stay after a drop in {folder}", advice if kept else "")

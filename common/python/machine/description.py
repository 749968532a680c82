"""What this machine is, and what it lets us have: the one module that reads environment variables."""

from __future__ import annotations

import fcntl
import importlib.metadata
import importlib.util
import os
import platform
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TextIO

import psutil
import pynvml

from common.python.errors import UnfitEnvironment
from common.python.machine.needs import FEATURES, package_of, parse_need, unmet_capability, unmet_packages
from common.python.machine.storage_needs import STORAGE, unmet_storage
from common.python.project import IS_CHECKOUT, PROJECT_ROOT
from common.python.results import Document

PACKAGES = (
    "torch", "triton", "numpy", "scipy", "pydantic", "typer", "rich", "jinja2", "psutil", "nvtx", "nvidia-ml-py",
    "nvidia-cutlass", "nvidia-cuda-nvdisasm", "nvidia-cuda-cuobjdump", "nvidia-nccl-cu13", "nvidia-cudnn-cu13",
)  # fmt: skip
"""Those whose version can change a number, a proof or a report."""

DISTRIBUTION = "performance-pairs"
"""This package. Its version is told where no commit is."""

_RECORDED = re.compile(
    r"(CUDA|CUBLAS|CUDNN|CUTE|CUTLASS|NCCL|NVCC|NVIDIA_(?!REQUIRE)\w*|NVSHMEM|NVTX|NSYS|TORCH\w*|PYTORCH|TRITON)_"
    r"|(OMP|GOMP|KMP|MKL|OPENBLAS|MALLOC|HF)_"
    r"|LD_PRELOAD$|LD_LIBRARY_PATH$"
)
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD", re.IGNORECASE)
_MASK = "***"

PROFILER_VARIABLES = (
    "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "NSYS_PROFILING_SESSION_ID", "NV_NSIGHT_INJECTION_TRANSPORT_TYPE",
)  # fmt: skip
"""Those by which a profiler loads itself into what it starts."""


class Gpu(Document):
    """One GPU that CUDA may use. `index` is NVML's; CUDA's own is the place in `Machine.gpus`.

    A limit is None where the driver, or the virtual machine, does not tell it. Clocks are in MHz, power in W.
    """

    index: int
    name: str
    uuid: str
    capability: tuple[int, int]
    memory_bytes: int
    driver: str
    power_limit_w: float | None = None
    sm_clock_max_mhz: int | None = None
    memory_clock_max_mhz: int | None = None
    c2c: bool = False


class Source(Document):
    """A git checkout: the commit it is at, and whether any file in it differs from that commit."""

    commit: str
    dirty: bool


class Machine(Document):
    """All that a result needs to say about where it was measured; it does not name the host.

    `project` and `root` are None outside a git checkout; `nvcc` and `cuda_driver` are versions, "" where there is none.
    """

    cpu: str
    architecture: str
    cores: int
    numa_nodes: int
    memory_bytes: int
    kernel: str
    python: str
    hosting: tuple[str, ...] = ()
    gpus: tuple[Gpu, ...] = ()
    cuda_driver: str = ""
    nvcc: str = ""
    packages: dict[str, str] = {}
    project: Source | None = None
    root: Source | None = None
    variables: dict[str, str] = {}
    notes: tuple[str, ...] = ()


def describe_machine(root: Path, nvml: Any = pynvml, variables: Mapping[str, str] = os.environ) -> Machine:
    """This machine as it is now; `root` is the folder whose targets are measured, `nvml` the pynvml module or its like."""
    gpus, cuda_driver, notes = _gpus(nvml, variables)
    project = harness_source()
    return Machine(
        cpu=cpu_model(),
        architecture=platform.machine(),
        cores=len(os.sched_getaffinity(0)),
        numa_nodes=max(1, len(list(Path("/sys/devices/system/node").glob("node[0-9]*")))),
        memory_bytes=psutil.virtual_memory().total,
        kernel=platform.release(),
        python=platform.python_version(),
        hosting=_hosting(),
        gpus=gpus,
        cuda_driver=cuda_driver,
        nvcc=version_of("nvcc"),
        packages=_packages(PACKAGES if project else (*PACKAGES, DISTRIBUTION)),
        project=project,
        root=project if root.resolve().is_relative_to(PROJECT_ROOT) else _source(root),
        variables=recorded_variables(variables),
        notes=notes,
    )


def recorded_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Those of other tools' variables that can change a number, sorted by name, the value of a secret masked."""
    return {name: _MASK if _SECRET.search(name) else variables[name] for name in sorted(variables) if _RECORDED.match(name)}


# --- GPUs


@contextmanager
def nvml_session(nvml: Any) -> Iterator[str]:
    """NVML for the length of the block; yields why there is none, or "" where there is. Sessions may nest."""
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        yield str(error)
        return
    try:
        yield ""
    finally:
        nvml.nvmlShutdown()


def answer(nvml: Any, query: Callable[..., Any], *arguments: Any) -> Any | None:
    """NVML's answer to one of its queries, or None where this GPU, driver or virtual machine gives none."""
    try:
        return query(*arguments)
    except nvml.NVMLError:
        return None


def _gpus(nvml: Any, variables: Mapping[str, str]) -> tuple[tuple[Gpu, ...], str, tuple[str, ...]]:
    """The GPUs that CUDA may use, the newest CUDA that their driver serves, and what is odd about either."""
    found: list[Gpu] = []
    notes: list[str] = []
    with nvml_session(nvml) as failure:
        if failure:
            return (), "", (f"no NVML, so no GPU is used: {failure}",)
        driver = str(answer(nvml, nvml.nvmlSystemGetDriverVersion) or "")
        number = answer(nvml, nvml.nvmlSystemGetCudaDriverVersion) or 0
        for index in range(nvml.nvmlDeviceGetCount()):
            try:
                found.append(_gpu(nvml, index, driver))
            except nvml.NVMLError as error:
                notes.append(f"GPU {index} is left out: {error}")
    gpus = tuple(found)
    if "CUDA_VISIBLE_DEVICES" in variables:
        value = variables["CUDA_VISIBLE_DEVICES"]
        gpus = _visible(gpus, value)
        notes.append(f"CUDA_VISIBLE_DEVICES={value!r} leaves {len(gpus)} of {len(found)} GPUs")
    return gpus, f"{number // 1000}.{number % 1000 // 10}" if number else "", tuple(notes)


def _gpu(nvml: Any, index: int, driver: str) -> Gpu:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    memory = answer(nvml, nvml.nvmlDeviceGetMemoryInfo, handle)
    power_mw = answer(nvml, nvml.nvmlDeviceGetEnforcedPowerLimit, handle)
    c2c = answer(nvml, nvml.nvmlDeviceGetC2cModeInfoV, handle)
    return Gpu(
        index=index,
        name=nvml.nvmlDeviceGetName(handle),
        uuid=nvml.nvmlDeviceGetUUID(handle),
        capability=nvml.nvmlDeviceGetCudaComputeCapability(handle),
        # A GPU that shares the CPU's memory has none of its own to report.
        memory_bytes=psutil.virtual_memory().total if memory is None else memory.total,
        driver=driver,
        power_limit_w=None if power_mw is None else power_mw / 1000,
        sm_clock_max_mhz=answer(nvml, nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_SM),
        memory_clock_max_mhz=answer(nvml, nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_MEM),
        c2c=c2c is not None and bool(c2c.isC2cEnabled),
    )


def _visible(gpus: tuple[Gpu, ...], value: str) -> tuple[Gpu, ...]:
    """What CUDA makes of CUDA_VISIBLE_DEVICES: either indices or beginnings of uuids, up to the first entry that names no GPU."""
    chosen: list[Gpu] = []
    by_uuid = value.strip().startswith("GPU-")
    for entry in (part.strip() for part in value.split(",")):
        named = [gpu for gpu in gpus if (entry.startswith("GPU-") and gpu.uuid.startswith(entry) if by_uuid else entry == str(gpu.index))]
        if len(named) != 1:
            break
        if named[0] in chosen:
            return ()
        chosen += named
    return tuple(chosen)


# --- the rest of the machine


def cpu_model() -> str:
    """What the CPU is called, or its architecture where the kernel does not tell."""
    found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found[1] if found else platform.processor() or platform.machine()


def _hosting() -> tuple[str, ...]:
    """What lies between us and the metal, as far as it shows."""
    layers = []
    if re.search(r"^flags\s*:.*\bhypervisor\b", Path("/proc/cpuinfo").read_text(), re.MULTILINE) or Path("/sys/hypervisor/type").exists():
        layers.append("virtual machine")
    if Path("/.dockerenv").exists() or Path("/run/.containerenv").exists() or "kubepods" in Path("/proc/self/cgroup").read_text():
        layers.append("container")
    return tuple(layers)


def _packages(names: Sequence[str]) -> dict[str, str]:
    versions = {}
    for name in names:
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[name] = importlib.metadata.version(name)
    return versions


def _source(folder: Path) -> Source | None:
    status = output_of("git", "--no-optional-locks", "-C", str(folder), "status", "--porcelain=v2", "--branch")
    commit = re.search(r"^# branch\.oid ([0-9a-f]+)$", status, re.MULTILINE)
    if commit is None:
        return None
    return Source(commit=commit[1], dirty=any(not line.startswith("#") for line in status.splitlines()))


def harness_source() -> Source | None:
    """The checkout that this harness is; None of an installed wheel, which may lie in a checkout of the user's own."""
    return _source(PROJECT_ROOT) if IS_CHECKOUT else None


def harness_text(source: Source | None) -> str:
    """The harness by its version, and by the commit of the checkout that it is: `1.0.0, commit 6cb8b42039 with changes`."""
    version = _packages([DISTRIBUTION]).get(DISTRIBUTION, "unknown version")
    if IS_CHECKOUT:  # what is installed may be another checkout
        version = tomllib.loads((PROJECT_ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    return f"{version}, commit {source.commit[:10]}{' with changes' if source.dirty else ''}" if source else version


# --- tools


def find_tool(name: str) -> Path | None:
    """Where the program `name` (nvcc, nvdisasm, ncu, nsys, ...) is, or None.

    Looked for on PATH, then in the CUDA toolkit, in Nsight's own folders (newest first), among pip's CUDA wheels and in Triton's.
    """
    if on_path := shutil.which(name):
        return Path(on_path)
    return next((folder / name for folder in _tool_folders() if os.access(folder / name, os.X_OK)), None)


def _tool_folders() -> Iterator[Path]:
    homes = [Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    yield from (home / "bin" for home in [*homes, Path("/usr/local/cuda")])
    for nsight in sorted(Path("/opt/nvidia").glob("nsight-*/*"), reverse=True):
        yield from (nsight, nsight / "bin", *nsight.glob("host/target-linux-*"))
    for package, folders in (("nvidia", "*/bin"), ("triton", "backends/nvidia/bin")):
        wheel = importlib.util.find_spec(package)
        if wheel is not None:
            yield from (folder for place in wheel.submodule_search_locations or () for folder in sorted(Path(place).glob(folders)))


def output_of(*command: str, timeout_s: float = 10.0) -> str:
    """What `command` prints to stdout; "" if it cannot be started, fails or takes longer than `timeout_s`."""
    try:
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, errors="replace", timeout=timeout_s, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def version_of(name: str) -> str:
    """The version that the tool `name` prints of itself, "" where it is missing or prints none."""
    path = find_tool(name)
    printed = output_of(str(path), "--version") if path else ""
    # NVIDIA's tools say "V13.0.88" or "version 2025.3.1.0"; a compiler ends its first line with the number.
    found = re.search(r"\b(?:V|[Vv]ersion )(\d+(?:\.\d+)+)", printed) or re.search(r"\A.*?(\d+(?:\.\d+)+)$", printed, re.MULTILINE)
    return found[1] if found else ""


# --- what children get


WITHOUT_MULTICAST = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}
"""NVLink multicast off, in NCCL, PyTorch and NVSHMEM: on a machine that others share its failure can cost them their GPUs."""


def allows_multicast(variables: Mapping[str, str]) -> bool:
    """Whether the machine's owner has switched NVLink multicast on."""
    return variables.get("NCCL_NVLS_ENABLE") == "1"


def child_environment(
    project_root: Path, device: str, variables: Mapping[str, str] = os.environ, *, packages: Sequence[Path] = ()
) -> dict[str, str]:
    """The environment of the fork server, and so of every worker and of the referee; `device` is "cuda" or "cpu".

    They find `packages` behind the project and the folders of PYTHONPATH.
    """
    # No side needs a secret, and Triton's interpreter is for the harness to choose: what is compiled ahead must not find it.
    left_out = (name for name in variables if _SECRET.search(name) or name == "TRITON_INTERPRET")
    child = {
        **{name: variables[name] for name in variables.keys() - set(left_out)},
        "PYTHONPATH": os.pathsep.join([str(project_root), *filter(None, [variables.get("PYTHONPATH")]), *map(str, packages)]),
        "PYTHONUNBUFFERED": "1",  # the last words of a killed child reach its log
        # Freed blocks stay in the heap: else glibc maps a large one anew each time, and page faults decide a CPU's time.
        "MALLOC_MMAP_THRESHOLD_": str(1 << 40),
        "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
        "MALLOC_TOP_PAD_": str(64 << 20),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",  # more are processes that outlive the step which compiled
        "GLOO_SOCKET_IFNAME": variables.get("GLOO_SOCKET_IFNAME", "lo"),  # all ranks are here, whatever the host's name resolves to
        "TORCH_NCCL_ENABLE_MONITORING": "0",  # a rank that is held still between requests is not one that hangs
    }
    if not allows_multicast(variables):
        child |= WITHOUT_MULTICAST
    if device == "cpu":
        one_thread = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OMP_WAIT_POLICY": "passive"}  # more would time the scheduler
        return child | one_thread | {"CUDA_VISIBLE_DEVICES": ""}
    return child | {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}  # NVML's order, in which CUDA_VISIBLE_DEVICES was read above


def sandbox_environment(folder: Path, variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment of a sandbox whose processes may write in `folder`'s tmp and cache alone; no secret is in it."""
    cache = folder / "cache"
    return {
        **{name: value for name, value in variables.items() if not _SECRET.search(name)},
        "PYTHONPATH": os.pathsep.join([str(PROJECT_ROOT), *filter(None, [variables.get("PYTHONPATH")])]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(folder / "tmp"),
        "TMPDIR": str(folder / "tmp"),
        "XDG_CACHE_HOME": str(cache),
        "CUDA_CACHE_PATH": str(cache / "cuda"),
        "TRITON_CACHE_DIR": str(cache / "triton"),
        "TORCHINDUCTOR_CACHE_DIR": str(cache / "inductor"),
    }


def variables_of(prefix: str, variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Those of a service's variables, without their `prefix`, that say anything. They may be secrets: keep none of them."""
    return {name.removeprefix(prefix): value for name, value in variables.items() if name.startswith(prefix) and value}


def set_words_of_bash(words: str, number: str) -> None:
    """Have typer complete word `number` of `words`, one a line."""
    os.environ |= {"COMP_WORDS": words, "COMP_CWORD": number}


def cache_folder(variables: Mapping[str, str] = os.environ) -> Path:
    """Where builds are kept for all checkouts of this user. Nothing bounds it; it may be removed while no run is on."""
    named = Path(variables.get("XDG_CACHE_HOME", ""))
    return (named if named.is_absolute() else Path.home() / ".cache") / "performance-pairs"


def private_paths(root: Path) -> dict[str, str]:
    """The folders whose names are nobody else's affair, and the word that may stand for each: `root`, the project, Python's and the home.

    What lies in another comes first. The system's own folders, such as the home `/` of a user who has none, tell nothing.
    """
    known = {Path.home(): "HOME", root: "ROOT", PROJECT_ROOT: "PROJECT"}
    if sys.prefix != sys.base_prefix:
        known[Path(sys.prefix)] = "PYTHON"
    spelt = {str(path): word for each, word in known.items() for path in (each.absolute(), each.resolve()) if len(path.parts) > 1}
    return dict(sorted(spelt.items(), key=lambda item: -len(item[0])))


def private_names() -> dict[str, str]:
    """The names of this host and of its user, as far as they are known, and the word that may stand for each; the longest first."""
    host = platform.node()
    names = {host: "HOST", host.partition(".")[0]: "HOST"}
    with suppress(KeyError):  # a container may run as a number that has no name
        names[pwd.getpwuid(os.getuid()).pw_name] = "USER"
    return {name: names[name] for name in sorted(filter(None, names), key=len, reverse=True)}


def profiler_attached(variables: Mapping[str, str] = os.environ) -> bool:
    """Whether nsys, ncu or compute-sanitizer has started this process, or one that it comes from."""
    return any(variables.get(name) for name in PROFILER_VARIABLES)


def asks_for_interpreter(variables: Mapping[str, str] = os.environ) -> bool:
    """Whether the environment asks Triton to run kernels in its interpreter."""
    return variables.get("TRITON_INTERPRET", "0").lower() not in ("", "0", "false", "off", "no", "n")


def set_compile_environment(*, interpret: bool, caches: Path | None, graphs: Path | None = None, threads: int = 0) -> None:
    """Prepare this process for a side that compiles: in Triton's interpreter, or with its compile caches in the folder `caches`.

    The graphs that torch.compile has compiled, and what autotuning has chosen for them, lie in `graphs` where that is another folder.
    `threads` is how many candidates autotuning may compile at once; 0 leaves it at one.
    Must come before the side imports triton, which reads both when it is imported.
    """
    if interpret:
        os.environ["TRITON_INTERPRET"] = "1"
    if caches is not None:
        os.environ |= {
            "TRITON_CACHE_DIR": f"{caches}/triton",
            "TORCHINDUCTOR_CACHE_DIR": f"{graphs or caches}/inductor",
            "CUDA_CACHE_PATH": f"{caches}/cuda",
        }
    if threads:  # the compiler, which is imported, keeps its one; these are threads of autotuning, and end with it
        os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = str(threads)


# --- what a target needs


def unmet(needs: Sequence[str], machine: Machine, root: Path) -> str:
    """Why a target with these `needs:` is SKIPPED on `machine`, or "" if all are met; `root` is where its files lie.

    Raises BenchmarkError for a need that is not known.
    """
    counts = dict(map(parse_need, needs))
    features = [name for name in counts if name in FEATURES]
    reasons = []
    if features and not machine.gpus:
        reasons.append(f"needs {', '.join(features)}; no CUDA device")
    elif features:
        reasons.append(unmet_capability(features, machine.gpus[0].capability))
    if "nvls" in counts and not (machine.gpus and allows_multicast(machine.variables)):
        reasons.append("needs nvls; NVLink multicast is off unless the machine's owner sets NCCL_NVLS_ENABLE=1")
    reasons += [unmet_packages(needs), *unmet_storage(tuple(counts), gpu=bool(machine.gpus), folder=root)]
    for name, count in counts.items():
        if name in FEATURES or name == "nvls" or name in STORAGE or package_of(name):
            continue
        noun, available = _resource(name, machine, root)
        if available < count:
            reasons.append(f"needs {count} {noun}{'s' if count > 1 else ''}; this machine has {available}")
    return "; ".join(filter(None, reasons))


def _resource(name: str, machine: Machine, root: Path) -> tuple[str, int]:
    """The resource that a need names, in words, and how many of it there are."""
    coherent = sum(gpu.c2c for gpu in machine.gpus) if machine.architecture == "aarch64" else 0
    drives = {path.name for path in Path("/sys/class/nvme").glob("nvme*")} | set(re.findall(r"nvme\d+", _block_device(root)))
    return {
        "gpus": ("GPU", len(machine.gpus)),
        "numa": ("NUMA node", machine.numa_nodes),
        "c2c": ("NVLink-C2C link between CPU and GPU", coherent),
        "nvme": ("NVMe drive", len(drives)),
        "nvshmem": ("NVSHMEM library for kernels (the package nvidia-nvshmem-cu13)", len(_nvshmem(machine.variables))),
        "rdma": ("RDMA network card, with the module nvidia-peermem loaded", len(_rdma_cards())),
    }[name]


def _nvshmem(variables: Mapping[str, str]) -> list[Path]:
    """The library of device functions: in the folder that the user names, or in the package that torch depends on."""
    packages = importlib.util.find_spec("nvidia")
    installed = [Path(folder, "nvshmem/lib") for folder in (packages and packages.submodule_search_locations) or ()]
    folders = [Path(variables["NVSHMEM_LIB_DIR"])] if variables.get("NVSHMEM_LIB_DIR") else installed
    return [found for folder in folders if (found := folder / "libnvshmem_device.bc").is_file()]


def _rdma_cards(system: Path = Path("/sys")) -> list[str]:
    """RDMA devices of the kernel, as ibv_devices lists them; none if no module lets them reach a GPU's memory."""
    reaches_gpus = (system / "module/nvidia_peermem").exists()
    return sorted(path.name for path in (system / "class/infiniband").glob("*")) if reaches_gpus else []


def _block_device(folder: Path) -> str:
    """The kernel's path of the block device that holds `folder`; one that has none (tmpfs, overlay) resolves to its number."""
    return str(Path(f"/sys/dev/block/{os.major(number := folder.stat().st_dev)}:{os.minor(number)}").resolve())


# --- one job a GPU


_TRY_AGAIN_S = 0.2


def _taken(file: TextIO) -> bool:
    """Whether the lock of `file` is had now."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def lock(device: str, purpose: str, wait_s: float = 0.0) -> Iterator[None]:
    """Hold `device` (a GPU's uuid, or "cpu") against this user's other runs for the length of the block.

    Raises UnfitEnvironment, naming the holder, if another run has it for `wait_s` more. A dead holder's lock is gone with it.
    """
    path = Path(tempfile.gettempdir()) / f"benchmark-{device}-{os.getuid()}.lock"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UnfitEnvironment(f"{path}: {error.strerror}; expected a lock file that this user can open") from error
    with os.fdopen(descriptor, "r+", encoding="utf-8") as file:
        deadline = time.monotonic() + wait_s
        while not _taken(file):
            if time.monotonic() >= deadline:
                holder = "the CPU" if device == "cpu" else f"GPU {device}"
                file.seek(0)  # another may have held it before
                found = f"another run ({file.read() or 'just starting'}) holds {holder}"
                waited = f", and did for the {wait_s:g} s of --wait" if wait_s > 0 else ""
                raise UnfitEnvironment(f"{found}{waited}; wait for it, as `run --wait SECONDS` does, or stop it")
            time.sleep(_TRY_AGAIN_S)
        file.truncate(0)
        file.write(f"process {os.getpid()}, {purpose}")
        file.flush()
        yield

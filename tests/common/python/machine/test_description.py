"""What the machine says of itself, what children get, and who holds a GPU."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pynvml
import pytest

from common.python.errors import BenchmarkError, UnfitEnvironment
from common.python.machine import description
from common.python.machine.description import (
    Gpu,
    Machine,
    Source,
    _rdma_cards,
    cache_folder,
    child_environment,
    describe_machine,
    find_tool,
    lock,
    output_of,
    private_names,
    private_paths,
    recorded_variables,
    unmet,
    version_of,
)
from common.python.project import PROJECT_ROOT
from tests.support.fake_nvml import FakeGpu, FakeNvml

UUIDS = ("GPU-11111111-aaaa", "GPU-11112222-bbbb", "GPU-33333333-cccc")


def machine(**changes) -> Machine:
    known = {"cpu": "any", "architecture": "x86_64", "cores": 8, "numa_nodes": 1, "memory_bytes": 1 << 35, "kernel": "6", "python": "3.12"}
    return Machine(**(known | changes))


def gpu(index: int = 0, **changes) -> Gpu:
    known = {"index": index, "name": "Test", "uuid": UUIDS[index], "capability": (9, 0), "memory_bytes": 1 << 36, "driver": "580"}
    return Gpu(**(known | changes))


# --- GPUs


@pytest.mark.parametrize(
    ("value", "indices"),
    [
        ("0,1,2", (0, 1, 2)),
        ("2,0", (2, 0)),
        (" 1 ", (1,)),
        ("", ()),
        ("-1", ()),
        ("NoDevFiles", ()),
        ("1,7,0", (1,)),
        ("0,0", ()),
        ("GPU-3333", (2,)),
        ("GPU-33333333-cccc, GPU-11111111", (2, 0)),
        ("GPU-33333333-cccc,0", (2,)),
        ("0,GPU-3333", (0,)),
        ("GPU-1111", ()),
        ("GPU-9999,0", ()),
    ],
)
def test_cuda_visible_devices_chooses_and_orders_gpus_as_cuda_does(value: str, indices: tuple[int, ...]) -> None:
    nvml = FakeNvml(*(FakeGpu(uuid) for uuid in UUIDS))
    found = describe_machine(PROJECT_ROOT, nvml, {"CUDA_VISIBLE_DEVICES": value})
    assert tuple(seen.index for seen in found.gpus) == indices
    assert found.variables["CUDA_VISIBLE_DEVICES"] == value
    assert found.notes == (f"CUDA_VISIBLE_DEVICES={value!r} leaves {len(indices)} of 3 GPUs",)


def test_a_gpu_is_described_in_our_units() -> None:
    clocks = {pynvml.NVML_CLOCK_SM: 1980, pynvml.NVML_CLOCK_MEM: 3201}
    answers = {"EnforcedPowerLimit": 700_000, "MaxClockInfo": clocks.__getitem__, "C2cModeInfoV": SimpleNamespace(isC2cEnabled=1)}
    nvml = FakeNvml(FakeGpu(UUIDS[0], answers))
    found = describe_machine(PROJECT_ROOT, nvml, {})
    assert found.cuda_driver == "13.0"
    assert found.gpus == (
        Gpu(
            index=0,
            name="NVIDIA Test",
            uuid=UUIDS[0],
            capability=(9, 0),
            memory_bytes=80 << 30,
            driver="580.95.05",
            power_limit_w=700.0,
            sm_clock_max_mhz=1980,
            memory_clock_max_mhz=3201,
            c2c=True,
        ),
    )
    assert nvml.sessions == 0


def test_what_a_virtual_machine_does_not_tell_is_none() -> None:
    (seen,) = describe_machine(PROJECT_ROOT, FakeNvml(FakeGpu()), {}).gpus
    assert (seen.power_limit_w, seen.sm_clock_max_mhz, seen.memory_clock_max_mhz, seen.c2c) == (None, None, None, False)


def test_a_gpu_that_shares_the_cpus_memory_has_as_much() -> None:
    def unsupported(*_: object) -> object:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    found = describe_machine(PROJECT_ROOT, FakeNvml(FakeGpu(answers={"MemoryInfo": unsupported})), {})
    assert found.gpus[0].memory_bytes == found.memory_bytes


def test_a_lost_gpu_is_left_out_and_named() -> None:
    def lost(*_: object) -> object:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)

    found = describe_machine(PROJECT_ROOT, FakeNvml(FakeGpu(UUIDS[0], {"Name": lost}), FakeGpu(UUIDS[1])), {})
    assert [seen.uuid for seen in found.gpus] == [UUIDS[1]]
    assert found.notes == ("GPU 0 is left out: GPU is lost",)


def test_without_a_driver_there_is_no_gpu_and_a_note_says_why() -> None:
    found = describe_machine(PROJECT_ROOT, FakeNvml(), {})
    assert found.gpus == ()
    assert found.notes == ("no NVML, so no GPU is used: NVML Shared Library Not Found",)


# --- the rest of the machine


def test_this_machine_is_described_and_read_back_the_same() -> None:
    found = describe_machine(PROJECT_ROOT)
    assert found.cores == len(os.sched_getaffinity(0))
    assert found.memory_bytes > 1 << 28
    assert found.packages["torch"].startswith("2.")
    assert Machine.model_validate_json(found.model_dump_json()) == found


def test_an_installed_wheel_is_named_by_its_version_and_not_by_the_commit_of_the_checkout_it_lies_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if here := describe_machine(PROJECT_ROOT, FakeNvml(), {}).project:
        assert len(here.commit) == 40
    monkeypatch.setattr(description, "IS_CHECKOUT", False)
    monkeypatch.setattr(description, "DISTRIBUTION", "pytest")  # stands for the wheel, which is not installed here
    found = describe_machine(PROJECT_ROOT, FakeNvml(), {})
    assert (found.project, found.packages["pytest"]) == (None, pytest.__version__)


def test_secrets_are_masked_and_only_other_tools_variables_are_recorded() -> None:
    variables = {
        "NCCL_NVLS_ENABLE": "0",
        "PYTORCH_CUDA_ALLOC_CONF": "backend:native",
        "TORCHINDUCTOR_CACHE_DIR": "/cache",
        "HF_TOKEN": "hunter2",
        "NVIDIA_API_KEY": "hunter2",
        "TRITON_registry_password": "hunter2",
        "CUDA_CLIENT_SECRET_FILE": "hunter2",
        "HOME": "hunter2",
        "NVIDIA_REQUIRE_CUDA": "pages of it",
    }
    assert recorded_variables(variables) == {
        "CUDA_CLIENT_SECRET_FILE": "***",
        "HF_TOKEN": "***",
        "NCCL_NVLS_ENABLE": "0",
        "NVIDIA_API_KEY": "***",
        "PYTORCH_CUDA_ALLOC_CONF": "backend:native",
        "TORCHINDUCTOR_CACHE_DIR": "/cache",
        "TRITON_registry_password": "***",
    }


def test_a_checkout_is_named_by_its_commit_and_by_whether_it_was_edited(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
        return subprocess.run(["git", "-C", tmp_path, *identity, *arguments], check=True, capture_output=True, text=True).stdout.strip()

    assert describe_machine(tmp_path, FakeNvml(), {}).root is None
    git("init", "--quiet")
    (tmp_path / "side.py").write_text("step = 1\n")
    git("add", "side.py")
    git("commit", "--quiet", "-m", "one")
    clean = describe_machine(tmp_path, FakeNvml(), {}).root
    (tmp_path / "side.py").write_text("step = 2\n")
    edited = describe_machine(tmp_path, FakeNvml(), {}).root
    assert clean is not None
    assert edited is not None
    assert (clean.commit, clean.dirty) == (git("rev-parse", "HEAD"), False)
    assert (edited.commit, edited.dirty) == (clean.commit, True)


# --- tools


def executable(path: Path, prints: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho '{prints}'\n")
    path.chmod(0o755)
    return path


def test_a_tool_is_taken_from_path_before_the_toolkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_toolkit = executable(tmp_path / "toolkit/bin/shaper", "shaper release 12.8, V12.8.93")
    on_path = executable(tmp_path / "path/shaper", "shaper (c) 2018-2025\nVersion 13.0.1 (build 7)")
    monkeypatch.setenv("CUDA_HOME", str(tmp_path / "toolkit"))
    assert find_tool("shaper") == in_toolkit
    assert version_of("shaper") == "12.8.93"
    monkeypatch.setenv("PATH", str(on_path.parent), prepend=os.pathsep)
    assert find_tool("shaper") == on_path
    assert version_of("shaper") == "13.0.1"
    executable(on_path, "shaper (Ubuntu 13.3.0-6ubuntu2~24.04.1) 13.3.0\nCopyright 2023")
    assert version_of("shaper") == "13.3.0"
    assert find_tool("no-such-shaper") is None
    assert version_of("no-such-shaper") == ""


def test_a_tool_is_taken_from_the_wheels_of_cuda_before_that_of_triton(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    places = {package: SimpleNamespace(submodule_search_locations=[str(tmp_path / package)]) for package in ("nvidia", "triton")}
    monkeypatch.setattr("importlib.util.find_spec", places.get)
    in_triton = executable(tmp_path / "triton/backends/nvidia/bin/shaper", "")
    assert find_tool("shaper") == in_triton
    in_wheel = executable(tmp_path / "nvidia/cu13/bin/shaper", "")
    assert find_tool("shaper") == in_wheel


def test_a_command_that_fails_or_hangs_prints_nothing() -> None:
    assert output_of("sh", "-c", "echo yes") == "yes\n"
    assert output_of("sh", "-c", "echo yes; exit 3") == ""
    assert output_of("sh", "-c", "echo yes; sleep 60", timeout_s=0.1) == ""
    assert output_of("/no/such/program") == ""


# --- children


def test_a_child_finds_the_project_first_and_keeps_the_parents_variables() -> None:
    parent = {"PYTHONPATH": "/theirs", "NCCL_NVLS_ENABLE": "0", "OMP_NUM_THREADS": "7", "CUDA_VISIBLE_DEVICES": "1"}
    on_gpu = child_environment(PROJECT_ROOT, "cuda", parent)
    assert on_gpu["PYTHONPATH"] == f"{PROJECT_ROOT}:/theirs"
    assert {name: on_gpu[name] for name in ("NCCL_NVLS_ENABLE", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES")} == {
        "NCCL_NVLS_ENABLE": "0",
        "OMP_NUM_THREADS": "7",
        "CUDA_VISIBLE_DEVICES": "1",
    }
    on_cpu = child_environment(PROJECT_ROOT, "cpu", parent)
    assert (on_cpu["OMP_NUM_THREADS"], on_cpu["MKL_NUM_THREADS"], on_cpu["OMP_WAIT_POLICY"]) == ("1", "1", "passive")
    assert on_cpu["CUDA_VISIBLE_DEVICES"] == ""
    assert child_environment(PROJECT_ROOT, "cpu", {})["PYTHONPATH"] == str(PROJECT_ROOT)


REUSE = """
import ctypes, resource
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
libc.free.argtypes, libc.memset.argtypes = [ctypes.c_void_p], [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
def fill_and_free(size=48 << 20):
    block = libc.malloc(size); libc.memset(block, 1, size); libc.free(block)
fill_and_free()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
fill_and_free()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def test_a_childs_freed_blocks_stay_mapped() -> None:
    def faults(environment: dict[str, str]) -> int:
        return int(subprocess.run([sys.executable, "-c", REUSE], env=environment, check=True, capture_output=True, text=True).stdout)

    fixed = child_environment(PROJECT_ROOT, "cpu")
    default = {name: value for name, value in fixed.items() if not name.startswith("MALLOC_")}
    assert faults(fixed) < 10
    assert faults(default) > 20  # 12 288 pages of 4 KiB, or 24 of 2 MiB: the problem is there to be solved


# --- needs

NO_MULTICAST = "needs nvls; NVLink multicast is off unless the machine's owner sets NCCL_NVLS_ENABLE=1"


@pytest.mark.parametrize(
    ("needs", "changes", "reason"),
    [
        ((), {}, ""),
        (("tma",), {}, "needs tma; no CUDA device"),
        (("wgmma", "clusters"), {}, "needs wgmma, clusters; no CUDA device"),
        (("wgmma", "tma"), {"gpus": (gpu(),)}, ""),
        (("tcgen05",), {"gpus": (gpu(),)}, "needs compute capability 10.x (tcgen05); this is 9.0"),
        (("gpus 2",), {"gpus": (gpu(),)}, "needs 2 GPUs; this machine has 1"),
        (("gpus 2",), {"gpus": (gpu(0), gpu(1))}, ""),
        (("gpus 1",), {}, "needs 1 GPU; this machine has 0"),
        (("numa 2",), {}, "needs 2 NUMA nodes; this machine has 1"),
        (("numa 2",), {"numa_nodes": 2}, ""),
        (("c2c",), {"gpus": (gpu(c2c=True),)}, "needs 1 NVLink-C2C link between CPU and GPU; this machine has 0"),
        (("c2c",), {"gpus": (gpu(c2c=True),), "architecture": "aarch64"}, ""),
        (("nvls",), {"gpus": (gpu(),)}, NO_MULTICAST),
        (("nvls",), {"variables": {"NCCL_NVLS_ENABLE": "1"}}, NO_MULTICAST),
        (("nvls",), {"gpus": (gpu(),), "variables": {"NCCL_NVLS_ENABLE": "1"}}, ""),
        (("package pytest", "package no_such"), {}, "needs the Python package no_such; not installed"),
        (("gds",), {}, "needs gds; no CUDA device"),
        (
            ("tma", "gpus 4", "numa 2"),
            {},
            "needs tma; no CUDA device; needs 4 GPUs; this machine has 0; needs 2 NUMA nodes; this machine has 1",
        ),
    ],
)
def test_an_unmet_need_is_a_sentence(needs: tuple[str, ...], changes: dict[str, object], reason: str) -> None:
    assert unmet(needs, machine(**changes), PROJECT_ROOT) == reason


def test_files_in_memory_are_on_nvme_only_if_some_drive_is_there() -> None:
    has_drive = any(Path("/sys/class/nvme").glob("nvme*"))
    assert unmet(("nvme",), machine(), Path("/dev/shm")) == ("" if has_drive else "needs 1 NVMe drive; this machine has 0")


def test_nvshmem_is_where_torch_looks_for_it(tmp_path: Path) -> None:
    here = machine(variables={"NVSHMEM_LIB_DIR": str(tmp_path)})
    missing = "needs 1 NVSHMEM library for kernels (the package nvidia-nvshmem-cu13); this machine has 0"
    assert unmet(("nvshmem",), here, PROJECT_ROOT) == missing
    (tmp_path / "libnvshmem_device.bc").touch()
    assert unmet(("nvshmem",), here, PROJECT_ROOT) == ""


def test_rdma_cards_count_where_they_reach_the_memory_of_gpus(tmp_path: Path) -> None:
    (tmp_path / "class/infiniband/mlx5_0").mkdir(parents=True)
    assert _rdma_cards(tmp_path) == []
    (tmp_path / "module/nvidia_peermem").mkdir(parents=True)
    assert _rdma_cards(tmp_path) == ["mlx5_0"]


def test_an_unknown_need_is_an_error() -> None:
    with pytest.raises(BenchmarkError, match="tmaa"):
        unmet(("tmaa",), machine(), PROJECT_ROOT)


# --- the cache


def test_builds_are_kept_in_the_user_s_cache_folder_and_not_in_the_checkout(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder({}) == tmp_path / ".cache/performance-pairs"
    assert cache_folder({"XDG_CACHE_HOME": "/caches"}) == Path("/caches/performance-pairs")
    assert cache_folder({"XDG_CACHE_HOME": "relative"}) == cache_folder({"XDG_CACHE_HOME": ""}) == cache_folder({})


# --- one job a GPU

HOLD = (
    "import sys, time; from common.python.machine.description import lock\n"
    "with lock(sys.argv[1], 'run'): print('held', flush=True); time.sleep(60)"
)


@pytest.fixture
def device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)  # tempfile remembers the folder it chose first
    return "GPU-test"


def test_a_second_process_is_refused_until_the_first_is_killed(device: str) -> None:
    command = [sys.executable, "-c", HOLD, device]
    with subprocess.Popen(command, env=child_environment(PROJECT_ROOT, "cpu"), stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "held\n"
            with pytest.raises(UnfitEnvironment) as refused, lock(device, "run"):
                pass
            found = f"another run (process {holder.pid}, run) holds GPU GPU-test"
            assert str(refused.value) == f"{found}; wait for it, as `run --wait SECONDS` does, or stop it"
            with pytest.raises(UnfitEnvironment, match=r"holds GPU GPU-test, and did for the 0.3 s of --wait; "), lock(device, "run", 0.3):
                pass
            threading.Timer(0.3, holder.kill).start()
            with lock(device, "run", 60):
                pass
            with lock("cpu", "run"):
                pass  # another device is another lock
        finally:
            holder.send_signal(signal.SIGKILL)
    with lock(device, "run"):
        pass


def test_a_lock_is_released_with_its_block_and_a_longer_purpose_leaves_no_trace(device: str) -> None:
    with lock(device, "a purpose of many words"):
        pass
    with lock(device, "peak"), pytest.raises(UnfitEnvironment, match=rf"\(process {os.getpid()}, peak\)"), lock(device, "run"):
        pass


def test_a_lock_file_that_is_not_ours_is_refused(device: str, tmp_path: Path) -> None:
    (tmp_path / f"benchmark-{device}-{os.getuid()}.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UnfitEnvironment, match="expected a lock file"), lock(device, "run"):
        pass
    assert not (tmp_path / "elsewhere").exists()


def test_no_child_is_given_a_secret():
    variables = {"ANTHROPIC_API_KEY": "x", "HF_TOKEN": "x", "DB_PASSWORD": "x", "LANG": "C.UTF-8"}
    child = child_environment(PROJECT_ROOT, "cpu", variables)
    assert child["LANG"] == "C.UTF-8"
    assert not {"ANTHROPIC_API_KEY", "HF_TOKEN", "DB_PASSWORD"} & child.keys()


def test_nvlink_multicast_is_off_in_children_unless_the_owner_has_it_on():
    off = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}
    for owned in ({}, {"NCCL_NVLS_ENABLE": "2", "NVSHMEM_DISABLE_NVLS": "0"}):
        assert off.items() <= child_environment(PROJECT_ROOT, "cuda", owned).items()
    owned = {"NCCL_NVLS_ENABLE": "1"}
    assert {name: value for name, value in child_environment(PROJECT_ROOT, "cuda", owned).items() if name in off} == owned


# --- what is private


def test_private_paths_are_the_innermost_first_and_tell_of_no_system_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    found = private_paths(tmp_path / "kernels")
    assert list(found).index(str(tmp_path / "kernels")) < list(found).index(str(tmp_path))
    assert (found[str(tmp_path / "kernels")], found[str(tmp_path)], found[str(PROJECT_ROOT)]) == ("ROOT", "HOME", "PROJECT")
    assert private_paths(PROJECT_ROOT)[str(PROJECT_ROOT)] == "PROJECT"
    monkeypatch.setattr(Path, "home", lambda: Path("/"))
    assert "/" not in private_paths(tmp_path)


def test_private_names_are_those_of_host_and_user_the_whole_name_first(monkeypatch):
    monkeypatch.setattr("platform.node", lambda: "node7.a-lab.example")
    monkeypatch.setattr("pwd.getpwuid", lambda _: SimpleNamespace(pw_name="alice"))
    assert list(private_names().items()) == [("node7.a-lab.example", "HOST"), ("node7", "HOST"), ("alice", "USER")]

    def nobody(_):
        raise KeyError

    monkeypatch.setattr("platform.node", lambda: "")
    monkeypatch.setattr("pwd.getpwuid", nobody)
    assert private_names() == {}


def test_the_harness_is_told_by_its_version_and_the_commit_of_a_checkout(monkeypatch):
    assert description.harness_text(Source(commit="6cb8b420391234", dirty=True)).endswith(", commit 6cb8b42039 with changes")
    assert description.harness_text(Source(commit="6cb8b420391234", dirty=False)).endswith(", commit 6cb8b42039")
    monkeypatch.setattr(description, "IS_CHECKOUT", False)
    assert description.harness_source() is None
    monkeypatch.setattr(description, "DISTRIBUTION", "nobodys_package")
    assert description.harness_text(None) == "unknown version"


def test_children_start_without_the_interpreter_that_the_user_has_chosen_and_keep_other_variables_of_triton():
    child = child_environment(Path("/project"), "cpu", {"TRITON_INTERPRET": "1", "TRITON_DEBUG": "1"})
    assert "TRITON_INTERPRET" not in child
    assert child["TRITON_DEBUG"] == "1"

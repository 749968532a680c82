"""Which conditions the doctor names, how bad it finds each, and that it always says what to do."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pydantic import ValidationError

from common.python.machine import doctor
from common.python.machine.description import Machine, describe_machine
from common.python.machine.doctor import Finding
from common.python.project import PROJECT_ROOT
from tests.support.fake_nvml import FakeGpu, FakeNvml

HEALTHY: dict[str, Any] = {
    "ComputeRunningProcesses": [SimpleNamespace(pid=os.getpid())],
    "GraphicsRunningProcesses": [],
    "UtilizationRates": SimpleNamespace(gpu=0),
    "EccMode": [1, 1],
    "RemappedRows": (2, 0, 0, 0),
    "TotalEccErrors": 0,
    "CurrPcieLinkWidth": 16,
    "MaxPcieLinkWidth": 16,
    "EnforcedPowerLimit": 700_000,
    "PowerManagementDefaultLimit": 700_000,
    "PersistenceMode": 1,
    "CurrentClocksEventReasons": 0x1,
    "MigMode": [0, 0],
}


def gpu_findings(answers: dict[str, Any]) -> dict[str, Finding]:
    nvml = FakeNvml(FakeGpu(answers=answers))
    findings = doctor.fitness(describe_machine(PROJECT_ROOT, nvml, {}), PROJECT_ROOT, nvml)
    assert nvml.sessions == 0
    return {finding.name.removeprefix("GPU 0 "): finding for finding in findings if finding.name.startswith("GPU 0")}


def machine(**changes: Any) -> Machine:
    return describe_machine(PROJECT_ROOT, FakeNvml(), {}).model_copy(update=changes)


def test_this_machine_is_examined_from_the_compiler_to_the_page_cache() -> None:
    findings = doctor.examine(describe_machine(PROJECT_ROOT), PROJECT_ROOT)
    names = [finding.name for finding in findings]
    assert len(names) == len(set(names))
    assert findings[0].name == "harness"
    assert {"python", "torch", "triton", "nvcc", "g++", "nvdisasm", "cuobjdump", "NVML", "profilers", "CPU governor"} <= set(names)
    assert {"SMT", "load", "memory", "cores", "disk", "shared memory", "page cache"} <= set(names)
    torch = next(finding for finding in findings if finding.name == "torch")
    assert torch.level != "bad"
    assert torch.found.startswith("2.")


@pytest.mark.parametrize(("level", "advice"), [("ok", "wait"), ("warn", ""), ("bad", "")])
def test_a_finding_has_advice_exactly_when_it_is_not_ok(level: str, advice: str) -> None:
    with pytest.raises(ValidationError, match="advice"):
        Finding.model_validate({"name": "load", "level": level, "found": "9.0 on 2 cores", "advice": advice})


def test_only_what_is_bad_makes_a_machine_unfit() -> None:
    warned = Finding(name="load", level="warn", found="3.0 on 2 cores", advice="wait")
    assert doctor.unfit([warned]) == ""
    bad = Finding(name="GPU 0 processes", level="bad", found="process 7 computes on it", advice="wait for it")
    assert doctor.unfit([warned, bad]) == "GPU 0 processes: process 7 computes on it; wait for it"


# --- a GPU


def test_a_healthy_gpu_is_ok_in_everything() -> None:
    findings = gpu_findings(HEALTHY)
    assert {name: finding.level for name, finding in findings.items()} == dict.fromkeys(
        ("processes", "memory", "PCIe link", "power cap", "persistence", "clocks", "MIG"), "ok"
    )
    assert findings["memory"].found == "ECC on, 0 uncorrected errors, 2 rows remapped"
    assert findings["PCIe link"].found == "x16 of x16"
    assert findings["power cap"].found == "700 W, 700 by default"
    assert findings["clocks"].found == "idle"


def test_a_virtual_gpu_that_reports_nothing_is_not_refused() -> None:
    findings = gpu_findings({})
    assert {finding.level for finding in findings.values()} == {"ok"}
    assert findings["PCIe link"].found == "not reported"


@pytest.mark.parametrize(
    ("answers", "name", "level", "found"),
    [
        ({"ComputeRunningProcesses": [SimpleNamespace(pid=1)]}, "processes", "bad", "process 1 computes"),
        ({"UtilizationRates": SimpleNamespace(gpu=97)}, "processes", "bad", "not visible"),
        ({"GraphicsRunningProcesses": [SimpleNamespace(pid=1)]}, "processes", "warn", "process 1 draws"),
        ({"TotalEccErrors": 3}, "memory", "warn", "3 uncorrected errors"),
        ({"RemappedRows": (0, 1, 1, 0)}, "memory", "warn", "1 rows remapped, and a remapping is pending"),
        ({"RemappedRows": (0, 1, 0, 1)}, "memory", "warn", "a remapping failed"),
        ({"CurrPcieLinkWidth": 8}, "PCIe link", "warn", "x8 of x16"),
        ({"EnforcedPowerLimit": 350_000}, "power cap", "warn", "350 W, 700 by default"),
        ({"PersistenceMode": 0}, "persistence", "warn", "off"),
        ({"CurrentClocksEventReasons": 0x40}, "clocks", "warn", "hw_thermal_slowdown"),
        ({"MigMode": [1, 1]}, "MIG", "warn", "on"),
    ],
)
def test_each_trouble_of_a_gpu_is_named(answers: dict[str, Any], name: str, level: str, found: str) -> None:
    findings = gpu_findings(HEALTHY | answers)
    assert findings[name].level == level
    assert found in findings[name].found
    assert {other: finding.level for other, finding in findings.items() if other != name and finding.level != "ok"} == {}
    assert bool(doctor.unfit(findings.values())) == (level == "bad")


def test_a_run_that_has_just_ended_is_not_taken_for_one_that_goes_on() -> None:
    rates = iter([SimpleNamespace(gpu=80), SimpleNamespace(gpu=0)])
    assert gpu_findings(HEALTHY | {"UtilizationRates": lambda: next(rates)})["processes"].level == "ok"


def test_our_own_children_may_compute_on_the_gpu() -> None:
    with subprocess.Popen(["sleep", "60"]) as child:
        try:
            findings = gpu_findings(HEALTHY | {"ComputeRunningProcesses": [SimpleNamespace(pid=child.pid)]})
        finally:
            child.kill()
    assert findings["processes"].level == "ok"


def test_a_gpu_that_stopped_answering_is_bad() -> None:
    here = describe_machine(PROJECT_ROOT, FakeNvml(FakeGpu("GPU-gone")), {})
    findings = doctor.fitness(here, PROJECT_ROOT, FakeNvml(FakeGpu("GPU-other")))
    assert doctor.unfit(findings).startswith("GPU 0: it does not answer")


# --- the host


def test_an_outside_profiler_is_named() -> None:
    assert doctor.outside_profilers({"CUDA_VISIBLE_DEVICES": "0"}, ["python", "bash"]).level == "ok"
    finding = doctor.outside_profilers({"CUDA_INJECTION64_PATH": "/opt/lib.so"}, ["nv-hostengine", "bash"])
    assert (finding.level, finding.found) == ("warn", "CUDA_INJECTION64_PATH, nv-hostengine")


@pytest.mark.parametrize(("name", "level"), [("performance", "ok"), ("powersave", "warn"), ("schedutil", "warn")])
def test_a_governor_that_saves_power_is_named(tmp_path: Path, name: str, level: str) -> None:
    (tmp_path / "cpu0/cpufreq").mkdir(parents=True)
    (tmp_path / "cpu0/cpufreq/scaling_governor").write_text(f"{name}\n")
    finding = doctor.governor(tmp_path)
    assert (finding.level, finding.found) == (level, name)


def test_a_governor_that_a_virtual_machine_hides_is_ok(tmp_path: Path) -> None:
    assert doctor.governor(tmp_path).level == "ok"


@pytest.mark.parametrize(("average", "cores", "level"), [(0.2, 2, "ok"), (1.5, 2, "warn"), (13.0, 16, "ok"), (15.0, 16, "warn")])
def test_load_must_leave_cores_to_the_side_and_its_parent(average: float, cores: int, level: str) -> None:
    assert doctor.load(average, cores).level == level


@pytest.mark.parametrize(
    ("files", "levels", "found"),
    [
        ({}, ["ok", "ok"], ["64 of 64 GiB may be used", "8 of 8 may be used"]),
        ({"memory.max": "max\n", "cpu.max": "max 100000\n"}, ["ok", "ok"], ["64 of 64 GiB may be used", "8 of 8 may be used"]),
        ({"memory.max": str(2 << 30), "cpu.max": "150000 100000\n"}, ["warn", "warn"], ["2 of 64 GiB may be used", "1.5 of 8 may be used"]),
        ({"memory.max": str(32 << 30), "cpu.max": "1600000 100000"}, ["ok", "ok"], ["32 of 64 GiB may be used", "16 of 8 may be used"]),
        ({"memory/memory.limit_in_bytes": str(4 << 30)}, ["warn", "ok"], ["4 of 64 GiB may be used", "8 of 8 may be used"]),
        ({"memory/memory.limit_in_bytes": str((1 << 63) - 4096)}, ["ok", "ok"], ["64 of 64 GiB may be used", "8 of 8 may be used"]),
    ],
)
def test_a_containers_limits_are_read(tmp_path: Path, files: dict[str, str], levels: list[str], found: list[str]) -> None:
    (tmp_path / "memory").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    findings = list(doctor.container(machine(memory_bytes=64 << 30, cores=8), tmp_path))
    assert [finding.level for finding in findings] == levels
    assert [finding.found for finding in findings] == found


def test_counters_that_are_kept_for_root_are_a_warning_to_others(tmp_path: Path) -> None:
    parameters = tmp_path / "params"
    parameters.write_text("ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n")
    assert doctor.counters(parameters, is_root=False).level == "warn"
    assert doctor.counters(parameters, is_root=True).level == "ok"
    parameters.write_text("RmProfilingAdminOnly: 0\n")
    assert doctor.counters(parameters, is_root=False).level == "ok"


def test_a_missing_library_of_a_program_is_named_and_one_beside_it_is_found(tmp_path: Path) -> None:
    (tmp_path / "answer.c").write_text("int answer(void) { return 42; }\n")
    (tmp_path / "main.c").write_text("int answer(void); int main(void) { return answer(); }\n")
    library, program = tmp_path / "libanswer.so.1", tmp_path / "importer"
    subprocess.run(["g++", "-x", "c", "-shared", "-fPIC", "-Wl,-soname,libanswer.so.1", "-o", library, tmp_path / "answer.c"], check=True)
    subprocess.run(["gcc", "-o", program, tmp_path / "main.c", library], check=True)
    assert doctor.missing_libraries(program) == ()
    library.unlink()
    assert doctor.missing_libraries(program) == ("libanswer.so.1",)


def test_a_file_system_in_memory_keeps_its_pages() -> None:
    finding = doctor.page_cache(Path("/dev/shm"))
    assert finding.level == "warn"
    assert "another file system" in finding.advice


def test_a_folder_that_cannot_be_written_is_a_finding_not_a_crash() -> None:
    finding = doctor.page_cache(Path("/proc"))
    assert finding.level == "warn"
    assert "/proc" in finding.found


def test_examining_leaves_nothing_behind(tmp_path: Path) -> None:
    doctor.fitness(machine(), tmp_path / "runs" / "not-made-yet")
    assert list(tmp_path.iterdir()) == []

"""The two scripts of chapter 2 that use the topology: where processes belong, and how fast links are."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pynvml
import pytest
import torch

from common.python.child.sides.loader import import_file
from tests.ch02.machines import sysfs_at, two_gpus
from tests.support.fake_nvml import FakeNvml
from tests.support.teeth import ROOT

CHAPTER = ROOT / "ch02"
info, aware, links = (
    import_file(CHAPTER / f"{name}.py") for name in ("hardware_info", "gb200_topology_aware", "nvlink_c2c_bandwidth_benchmark")
)


def found(folder, nvml=None, allowed=range(8), **sysfs):
    return info.topology(two_gpus() if nvml is None else nvml, sysfs_at(folder, **sysfs), allowed)


def test_each_gpu_gets_the_cores_and_the_memory_of_its_own_node(tmp_path):
    assert [plan["bind"] for plan in aware.plan_of(found(tmp_path))] == [
        "numactl --physcpubind=4-7 --membind=1",
        "numactl --physcpubind=0-3 --membind=0",
    ]


def test_gpus_of_one_node_share_its_cores(tmp_path):
    plans = aware.plan_of(found(tmp_path, near=(0, 0)))
    assert [(plan["cpus"], plan["memory_node"]) for plan in plans] == [("0-1", 0), ("2-3", 0)]


@pytest.mark.parametrize(("sysfs", "allowed", "why"), [({"near": (-1, -1)}, range(8), "does not know"), ({}, [0], "4-7) is allowed")])
def test_what_cannot_be_bound_is_said(tmp_path, sysfs, allowed, why):
    plan = aware.plan_of(found(tmp_path, allowed=allowed, **sysfs))[0]
    assert (plan["bind"], plan["cpus"], plan["memory_node"]) == ("", "", None)
    assert why in plan["why"]


def test_memory_of_a_gpu_is_no_place_for_the_hosts(tmp_path):
    plans = aware.plan_of(found(tmp_path, two_gpus(NumaNodeId=1)))
    assert plans[0]["why"] == "its NUMA node 1 is memory of a GPU"
    assert plans[1]["memory_node"] == 0


@pytest.mark.parametrize(
    ("answers", "path"),
    [
        ({}, "NVLink"),
        ({"kind": pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH}, "NVSwitch"),
        ({"kind": pynvml.NVML_NVLINK_DEVICE_TYPE_SWITCH, "peers": pynvml.NVML_P2P_STATUS_NOT_SUPPORTED}, "the host"),
    ],
)
def test_the_way_to_another_gpu_is_what_the_driver_lets_us_use(tmp_path, answers, path):
    assert aware.plan_of(found(tmp_path, two_gpus(**answers)))[0]["reaches"] == {1: path}


@pytest.mark.parametrize(
    ("architecture", "capability", "c2c", "name"),
    [
        ("aarch64", (10, 0), 1, "GB200"),
        ("aarch64", (9, 0), 1, "GH200"),
        ("aarch64", (12, 1), 1, "GB10"),
        ("aarch64", (10, 0), 0, ""),
        ("x86_64", (10, 0), 1, ""),
    ],
)
def test_a_superchip_is_an_arm_cpu_with_a_coherent_link(tmp_path, architecture, capability, c2c, name):
    nvml = two_gpus(CudaComputeCapability=capability, C2cModeInfoV=SimpleNamespace(isC2cEnabled=c2c))
    assert aware.superchip_of(found(tmp_path, nvml) | {"architecture": architecture}) == name


def test_cores_are_shared_out_evenly():
    assert aware.shares_of([0, 1, 2, 3, 4], 2) == [[0, 1], [2, 3, 4]]
    assert aware.shares_of([0], 2) == [[0], [0]]


def test_a_machine_without_a_gpu_is_skipped(tmp_path):
    seen = found(tmp_path, FakeNvml())
    assert "SKIPPED: needs an NVIDIA GPU" in list(aware.lines(seen))


def test_rates_count_the_bytes_of_both_directions(monkeypatch):
    clock = iter(float(second) for second in range(1000))
    monkeypatch.setattr(links.time, "perf_counter", lambda: next(clock))
    rates = links.both_ways(torch.device("cpu"), torch.device("cpu"), 1 << 10)
    assert rates == {"out": links.COPIES * 1024, "back": links.COPIES * 1024, "both": 2 * links.COPIES * 1024}


def test_a_copy_that_does_not_arrive_is_an_error(monkeypatch):
    monkeypatch.setattr(links.Copy, "queue", lambda self: None)
    with pytest.raises(RuntimeError, match="did not arrive"):
        links.both_ways(torch.device("cpu"), torch.device("cpu"), 1 << 10)


@pytest.mark.parametrize("script", ["gb200_topology_aware", "nvlink_c2c_bandwidth_benchmark"])
def test_a_script_runs_here_and_prints_json(script):
    command = [sys.executable, CHAPTER / f"{script}.py", "--json"]
    json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)


def test_a_size_that_is_none_is_refused(capsys):
    with pytest.raises(SystemExit):
        links.main(["--mib", "0"])
    assert "--mib 0: expected 1 to 4096" in capsys.readouterr().err

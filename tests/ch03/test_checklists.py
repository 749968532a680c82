"""The checklists read a tree of /sys and /proc as it is, and change it with --apply and as root alone."""

import os
import subprocess

import pytest

from tests.support.teeth import ROOT

THP = "sys/kernel/mm/transparent_hugepage"
CARD = "sys/bus/pci/devices/0000:41:00.0"
SERVER = {
    **{f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor": "powersave" for cpu in (0, 1)},
    "sys/devices/system/cpu/cpu24/cpufreq/scaling_governor": "performance",
    "sys/devices/system/node/node0/cpulist": "0-1",
    "sys/devices/system/node/node1/cpulist": "24-25",
    f"{THP}/enabled": "[always] madvise never",
    f"{THP}/defrag": "always defer defer+madvise [madvise] never",
    "proc/sys/kernel/numa_balancing": "1",
    "proc/sys/vm/zone_reclaim_mode": "0",
    "proc/sys/vm/swappiness": "60",
    "proc/modules": "nvidia 1 0 - Live 0x0\nnvidia_peermem 1 0 - Live 0x0",
    f"{CARD}/class": "0x020700",
    f"{CARD}/numa_node": "1",
    f"{CARD}/msi_irqs/90": "msix",
    f"{CARD}/msi_irqs/91": "msix",
    "proc/irq/90/smp_affinity_list": "24-25",
    "proc/irq/91/smp_affinity_list": "0-1",
    "sys/class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE",
    "proc/cpuinfo": "model name\t: Intel(R) Xeon(R) Platinum 8174 CPU @ 3.10GHz",
}
GRACE = {
    "proc/cpuinfo": "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd4f",
    "proc/cmdline": "BOOT_IMAGE=/boot/vmlinuz numa_balancing=disable",
    "proc/sys/kernel/numa_balancing": "1",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "ondemand",
    "sys/devices/system/node/node0/cpulist": "0-71",
    "sys/devices/system/node/node1/cpulist": "72-143",
    "sys/devices/system/node/node2/cpulist": "",
    "sys/bus/pci/devices/0008:01:00.0/vendor": "0x10de",
    "sys/bus/pci/devices/0008:01:00.0/class": "0x030200",
    "sys/bus/pci/devices/0008:01:00.0/numa_node": "0",
    "sys/bus/pci/devices/0009:01:00.0/vendor": "0x10de",
    "sys/bus/pci/devices/0009:01:00.0/class": "0x030200",
    "sys/bus/pci/devices/0009:01:00.0/numa_node": "0",
}
STANDINS = {  # for programs of a machine with two GPUs; what they are asked is noted
    "nvidia-smi": """echo "$@" >>"$ASKED"
case $1 in *persistence_mode*) printf "Disabled\\nEnabled\\n" ;; *clocks*) echo "345 MHz, 1980 MHz" ;; esac""",
    "id": '[[ $1 == -un ]] && echo "$USER_NAME" || echo "$USER_ID"',
    "modprobe": 'echo modprobe "$@" >>"$ASKED"',
}


@pytest.fixture
def run(tmp_path):
    """Runs a checklist on a tree of these files; returns what it printed, the tree then, and what programs were asked."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, text in STANDINS.items():
        (programs / name).write_text(f"#!/usr/bin/env bash\n{text}\n")
        (programs / name).chmod(0o755)
    asked, tree = tmp_path / "asked", tmp_path / "tree"

    def ran(script, files, *flags, user=("root", "0")):
        for path, text in files.items():
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            (tree / path).write_text(f"{text}\n")
        asked.write_text("")
        variables = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}", "ASKED": str(asked), "USER_NAME": user[0], "USER_ID": user[1]}
        command = ["bash", ROOT / "ch03" / script, "--tree", tree, *flags]
        ended = subprocess.run(command, env=variables, capture_output=True, text=True)
        return ended, {path: (tree / path).read_text().rstrip("\n") for path in files}, asked.read_text().splitlines()

    return ran


def block(printed, name):
    """What is printed of a setting, by its label, with its state as `state`."""
    (found,) = [part for part in printed.split("\n\n") if part.startswith((f"{name}: ", f"{name}\n"))]
    title, *lines = found.splitlines()
    return {"state": title.removeprefix(name).removeprefix(": "), **{line.split()[0]: " ".join(line.split()[1:]) for line in lines}}


def test_a_server_is_read_and_nothing_changes(run):
    ended, tree, asked = run("system_tuning.sh", SERVER, user=("reader", "1000"))
    assert (ended.returncode, ended.stderr) == (0, "")
    assert tree == SERVER
    assert all(line.startswith("--query-gpu=") for line in asked)
    assert ended.stdout.endswith("nothing was changed\n")
    governor = block(ended.stdout, "CPU governor")
    assert (governor["state"], governor["present"], governor["wanted"]) == ("differs", "1 performance, 2 powersave", "performance")
    assert block(ended.stdout, "interrupts of 0000:41:00.0")["present"] == "1 of 2 on CPUs 24-25"
    assert block(ended.stdout, "GPU persistence mode")["present"] == "1 Disabled, 1 Enabled"
    assert block(ended.stdout, "GPU clocks")["state"] == "yours to judge"
    as_wanted = ("zone reclaim", "compaction for huge pages", "GPUDirect RDMA", "InfiniBand and RoCE ports")
    assert [block(ended.stdout, name)["state"] for name in as_wanted] == ["as wanted"] * 4


def test_every_setting_has_its_reason_and_its_command(run):
    ended, _, _ = run("system_tuning.sh", SERVER)
    for part in ended.stdout.strip().split("\n\n")[:-1]:
        assert [line.split()[0] for line in part.splitlines()[1:]] == ["why", "present", "wanted", "set"]


def test_root_applies_what_differs_and_neither_clocks_nor_limits(run):
    ended, tree, asked = run("system_tuning.sh", SERVER, "--apply")
    assert (ended.returncode, ended.stderr) == (0, "")
    changed = {path: text for path, text in tree.items() if text != SERVER[path]}
    assert changed == {
        **{f"sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor": "performance" for cpu in (0, 1)},
        f"{THP}/enabled": "madvise",
        "proc/sys/kernel/numa_balancing": "0",
        "proc/sys/vm/swappiness": "10",
        "proc/irq/91/smp_affinity_list": "24-25",
    }
    assert [line for line in asked if not line.startswith("--query-gpu=")] == ["--persistence-mode=1"]
    assert "6 changed, 0 failed" in ended.stdout


def test_what_cannot_be_set_fails_the_script(run, tmp_path):
    (tmp_path / "programs/nvidia-smi").write_text(
        '#!/bin/sh\ncase $1 in *query*mode*) echo Disabled ;; --pers*) echo "not now" >&2; exit 4 ;; esac\n'
    )
    ended, _, _ = run("system_tuning.sh", {"proc/sys/vm/swappiness": "10"}, "--apply")
    assert (ended.returncode, ended.stderr) == (1, "not now\n")
    assert "0 changed, 1 failed" in ended.stdout


@pytest.mark.parametrize("script", ["system_tuning.sh", "gb200_numa_optimizations.sh"])
def test_apply_without_root_is_one_sentence_and_a_status(run, script):
    ended, tree, asked = run(script, SERVER, "--apply", user=("reader", "1000"))
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", "error: --apply: found user reader; expected root\n")
    assert (tree, asked) == (SERVER, [])


@pytest.mark.parametrize("script", ["system_tuning.sh", "gb200_numa_optimizations.sh"])
def test_an_unknown_flag_is_one_sentence_and_a_status(run, script):
    ended, _, _ = run(script, SERVER, "--aply")
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", "error: found '--aply'; expected --apply, or nothing\n")


def test_a_machine_without_grace_is_skipped_with_the_reason(run):
    ended, tree, _ = run("gb200_numa_optimizations.sh", SERVER)
    found = "found Intel(R) Xeon(R) Platinum 8174 CPU @ 3.10GHz; try ch03/system_tuning.sh"
    assert (ended.returncode, ended.stdout) == (0, f"SKIPPED: needs Grace CPUs (Neoverse V2); {found}\n")
    ended, then, _ = run("gb200_numa_optimizations.sh", SERVER, "--apply")
    assert ended.returncode == 1
    assert tree == then == SERVER


def test_grace_shows_which_gpu_is_on_which_node_and_what_its_kernel_lacks(run):
    ended, tree, _ = run("gb200_numa_optimizations.sh", GRACE)
    assert (ended.returncode, ended.stderr, tree) == (0, "", GRACE)
    assert ended.stdout.startswith(
        "node0: CPUs 0-71\nnode1: CPUs 72-143\nnode2: memory alone, of a GPU\nGPU at 0008:01:00.0: node0\nGPU at 0009:01:00.0: node0\n\n"
    )
    assert block(ended.stdout, "zeroing at allocation")["present"] == "not given"
    ended, tree, _ = run("gb200_numa_optimizations.sh", GRACE, "--apply")
    assert ended.returncode == 0
    assert {path for path, text in tree.items() if text != GRACE[path]} == {
        "proc/sys/kernel/numa_balancing",
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
    }


def test_this_machine_can_be_read():
    ended = subprocess.run(["bash", ROOT / "ch03/system_tuning.sh"], capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")

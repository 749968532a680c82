"""NUMA nodes and the GPUs on them, as recorded machines show them; and that a command is bound, or refused in one sentence."""

import json
import os
import subprocess
import sys

import pytest

from common.python.child.sides.loader import import_file
from tests.ch03.conftest import RECORDED
from tests.support.teeth import CPU, ROOT

SCRIPT = ROOT / "ch03/bind_numa_affinity.py"
numa = import_file(ROOT / "ch03/shared_numa.py")
script = import_file(SCRIPT)


def run(*arguments):
    return subprocess.run([sys.executable, SCRIPT, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True)


@pytest.mark.parametrize(("text", "cpus"), [("0-2,8\n", {0, 1, 2, 8}), ("\n", set()), ("5", {5}), ("0-1,24-25", {0, 1, 24, 25})])
def test_a_list_of_the_kernel_is_read_and_written(text, cpus):
    assert numa.cpus_in(text) == cpus
    assert script.spans(cpus) == text.strip()


@pytest.mark.parametrize("text", ["a", "0x3", "0-b"])
def test_what_is_no_list_is_refused(text):
    with pytest.raises(ValueError, match="invalid literal"):
        numa.cpus_in(text)


def test_every_recording_names_its_source():
    recorded = sorted(RECORDED.glob("*.json"))
    assert [path.stem for path in recorded] == ["gpu_memory_nodes", "grace_hopper", "grace_spark", "one_node", "two_sockets"]
    assert all(len(json.loads(path.read_text())["source"]) > 40 for path in recorded)


def test_gpus_of_two_sockets_are_on_the_node_of_their_socket_and_switches_are_no_gpus(sysfs):
    root = sysfs("two_sockets")
    found = script.gpus(root)
    assert len(found) == 16
    assert [numa.node_of(pci, root) for pci in found] == [0] * 8 + [1] * 8  # so GPU 1 is not on node 1
    assert numa.cpus_by_node(root) == {0: {0, 1}, 1: {24, 25}}
    assert numa.node_of("0000:3B:00.0", root) == 0


def test_memory_of_gpus_is_a_node_without_cpus(sysfs):
    assert [node for node, cpus in numa.cpus_by_node(sysfs("gpu_memory_nodes")).items() if cpus] == [0, 8]
    hopper = sysfs("grace_hopper")
    assert {node: len(cpus) for node, cpus in numa.cpus_by_node(hopper).items()} == {0: 72, **dict.fromkeys(range(1, 9), 0)}
    lines = list(script.listing(hopper))
    assert lines[1] == "node 1: memory alone, no CPU"
    assert lines[-2:] == ["GPU 0 at 0009:01:00.0: node 0", "one node has CPUs, node 0: binding to it changes nothing"]


@pytest.mark.parametrize(("name", "node"), [("one_node", 0), ("grace_spark", 0), ("grace_hopper", 0), ("two_sockets", None)])
def test_the_only_node_with_cpus_is_home_and_of_several_nobody_knows(sysfs, name, node):
    assert numa.home_of(CPU, sysfs(name)) == node


def test_a_gpu_s_home_is_its_address_s_node_and_minus_one_is_unknown(sysfs, monkeypatch):
    root = sysfs("two_sockets")
    monkeypatch.setattr(numa, "address_of", lambda _: "0000:e7:00.0")
    device = type("Device", (), {"type": "cuda"})
    assert numa.home_of(device, root) == 1
    (root / "bus/pci/devices/0000:e7:00.0/numa_node").write_text("-1\n")
    assert numa.home_of(device, root) is None


@pytest.fixture
def machine(sysfs, monkeypatch):
    """Two sockets, of which this process may use three CPUs; what each thread is bound to is noted."""
    bound = {}
    monkeypatch.setattr(numa.os, "sched_getaffinity", lambda _: {0, 1, 25})
    monkeypatch.setattr(numa.os, "sched_setaffinity", bound.__setitem__)
    return sysfs("two_sockets"), bound


def test_binding_takes_the_node_s_cpus_that_are_allowed_for_every_thread(machine):
    root, bound = machine
    assert numa.bind(1, root) == {25}
    assert os.getpid() in bound
    assert set(map(frozenset, bound.values())) == {frozenset({25})}


def test_binding_to_a_node_without_cpus_is_refused_before_anything_changes(machine):
    root, bound = machine
    with pytest.raises(OSError, match=r"node 2 has no CPU that this process may use; expected one, of \[0, 1\]"):
        numa.bind(2, root)
    assert bound == {}


def test_libnuma_that_the_kernel_refuses_is_an_error(monkeypatch):
    monkeypatch.setattr(numa.ctypes, "CDLL", lambda _: type("Library", (), {"numa_available": lambda: -1}))
    with pytest.raises(OSError, match="libnuma finds no NUMA support"):
        numa.libnuma()


def test_a_command_runs_bound_with_the_node_s_memory_preferred_and_its_exit_status_is_kept():
    code = """
import ctypes, os
mode = ctypes.c_int()
ctypes.CDLL("libnuma.so.1").get_mempolicy(ctypes.byref(mode), None, 0, None, 0)
print(mode.value, len(os.sched_getaffinity(0)))
raise SystemExit(7)
"""
    ended = run("--node", 0, sys.executable, "-c", code)
    if "libnuma" in ended.stderr:
        pytest.skip(ended.stderr)
    mode, cpus = map(int, ended.stdout.split())
    assert ended.returncode == 7
    assert mode in (1, 5)  # MPOL_PREFERRED, and MPOL_PREFERRED_MANY
    assert cpus == len(os.sched_getaffinity(0) & numa.cpus_by_node()[0])


BAD = {
    "--node: node 7 is unknown; expected one with CPUs: 0, 1": ["--node", 7],
    "--gpu: found 16 GPUs, and no GPU 16; expected a number that nvidia-smi shows": ["--gpu", 16],
    "found the command ls and no node; expected --gpu or --node": ["ls"],
}


@pytest.mark.parametrize("message", BAD)
def test_bad_input_is_one_sentence_and_a_status(message, sysfs):
    ended = run("--sysfs", sysfs("two_sockets"), *BAD[message])
    assert (ended.returncode, ended.stdout, ended.stderr) == (1, "", f"error: {message}\n")


def test_a_node_of_memory_alone_and_a_gpu_of_unknown_node_are_refused(sysfs):
    hopper = sysfs("grace_hopper")
    assert run("--sysfs", hopper, "--node", 3).stderr == "error: --node: node 3 has no CPUs; expected one with CPUs: 0\n"
    (hopper / "bus/pci/devices/0009:01:00.0/numa_node").write_text("-1\n")
    message = "error: --gpu: the node of 0009:01:00.0 is unknown; expected --node, with one of: 0\n"
    assert run("--sysfs", hopper, "--gpu", 0).stderr == message


def test_without_arguments_it_lists_this_machine():
    ended = run()
    assert ended.returncode == 0
    assert ended.stdout.startswith("node 0: ")

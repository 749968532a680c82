"""NUMA nodes as sysfs shows them, and how a process is bound to one."""

import ctypes
import os
from pathlib import Path

SYSFS = Path("/sys")


def cpus_in(text):
    """The CPUs of a kernel's list: "0-2,8" is {0, 1, 2, 8}. Raises ValueError for anything else."""
    spans = [span.partition("-") for span in text.strip().split(",") if span]
    return {cpu for first, _, last in spans for cpu in range(int(first), int(last or first) + 1)}


def cpus_by_node(sysfs=SYSFS):
    """The CPUs of each node, by its number: none for a node that is memory alone, as that of a GPU behind NVLink-C2C is."""
    lists = (sysfs / "devices/system/node").glob("node[0-9]*/cpulist")
    return dict(sorted((int(path.parent.name.removeprefix("node")), cpus_in(path.read_text())) for path in lists))


def node_of(pci, sysfs=SYSFS):
    """The node of the PCI device at an address such as 0000:3b:00.0; None where the firmware does not tell, which sysfs shows as -1."""
    path = sysfs / "bus/pci/devices" / pci.lower() / "numa_node"
    node = int(path.read_text()) if path.is_file() else -1
    return node if node >= 0 else None


def address_of(device):
    """The PCI address of a torch CUDA device, from the driver, which knows of CUDA_VISIBLE_DEVICES."""
    driver, handle, text = ctypes.CDLL("libcuda.so.1"), ctypes.c_int(), ctypes.create_string_buffer(32)
    if driver.cuDeviceGet(ctypes.byref(handle), device.index or 0) or driver.cuDeviceGetPCIBusId(text, len(text), handle):
        raise OSError(f"{device}: the CUDA driver gave no PCI address; expected one such as 0000:3b:00.0")
    return text.value.decode()


def home_of(device, sysfs=SYSFS):
    """The node of a torch device: that of its PCI address, or the only one with CPUs, or None where nobody knows."""
    node = node_of(address_of(device), sysfs) if device.type == "cuda" else None
    having = [number for number, cpus in cpus_by_node(sysfs).items() if cpus]
    return having[0] if node is None and len(having) == 1 else node


def bind(node, sysfs=SYSFS):
    """Run this process's threads on the CPUs of `node` that it may use, which are returned.

    A page comes from the node of the CPU that writes it first, so new memory follows. Raises OSError where none of the CPUs are allowed.
    """
    if not (cpus := cpus_by_node(sysfs).get(node, set()) & os.sched_getaffinity(0)):
        raise OSError(f"node {node} has no CPU that this process may use; expected one, of {sorted(cpus_by_node(sysfs))}")
    for thread in Path("/proc/self/task").iterdir():
        os.sched_setaffinity(int(thread.name), cpus)
    return cpus


def libnuma():
    """The library that sets memory policies. Raises OSError where it is missing or of no use."""
    if (library := ctypes.CDLL("libnuma.so.1")).numa_available() < 0:
        raise OSError("libnuma finds no NUMA support; expected get_mempolicy(2), which a container may need SYS_NICE for")
    return library

"""What this machine is: GPUs, NUMA nodes, and the links between them, as NVML and sysfs tell it. What nobody tells is "unknown".

./setup.sh python ch02/hardware_info.py [--json] [--svg FILE]

Prints a table, or the same as JSON; --svg also draws it. A GPU's node comes from its PCI address, never from its index.
"""

import argparse
import json
import os
import platform
import sys
from pathlib import Path

import pynvml
from topology_drawing import drawn

from common.python.machine.description import answer, nvml_session

UNKNOWN = -1  # what the kernel says of a device whose node it does not know
ANCESTORS = {
    pynvml.NVML_TOPOLOGY_INTERNAL: "one board",
    pynvml.NVML_TOPOLOGY_SINGLE: "one PCIe switch",
    pynvml.NVML_TOPOLOGY_MULTIPLE: "PCIe switches",
    pynvml.NVML_TOPOLOGY_HOSTBRIDGE: "one host bridge",
    pynvml.NVML_TOPOLOGY_NODE: "one NUMA node",
    pynvml.NVML_TOPOLOGY_SYSTEM: "the system",
}


def cpus_of(text):
    """The numbers in a list of the kernel, such as `0-3,8`; none in an empty one. Raises ValueError for any other text."""
    found = []
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def list_of(cpus):
    """The kernel's way to write numbers: `0-3,8`."""
    runs = []
    for cpu in sorted(cpus):
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def read(path, default=""):
    """The text of a file of sysfs, or `default` where the kernel has none."""
    try:
        return path.read_text().strip()
    except OSError:
        return default


def nodes_of(sysfs, allowed):
    """The NUMA nodes: cores that this process may use, memory in bytes, and distances to all nodes, 10 being the node itself."""
    found = []
    for folder in sorted((sysfs / "devices/system/node").glob("node[0-9]*"), key=lambda path: int(path.name[4:])):
        total = [line.split() for line in read(folder / "meminfo").splitlines() if "MemTotal" in line]
        cpus = cpus_of(read(folder / "cpulist"))
        found.append({
            "node": int(folder.name[4:]),
            "cpus": list_of(cpus),
            "allowed_cpus": list_of(allowed & set(cpus)),
            "memory_bytes": 1024 * int(total[0][3]) if total else None,
            "distances": [int(word) for word in read(folder / "distance").split()],
        })  # fmt: skip
    return found


def address_of(pci):
    """A PCI address as sysfs writes it, with a domain of four digits: 0000:18:00.0."""
    text = pci.busId.decode() if isinstance(pci.busId, bytes) else pci.busId
    domain, _, rest = text.lower().partition(":")
    return f"{domain[-4:]}:{rest}"


def nvlinks_of(nvml, handle, addresses):
    """The NVLinks of a GPU that are up, counted by what is at the other end: `GPU 1`, `NVSwitch`, or another PCI device."""
    found = {}
    for link in range(nvml.NVML_NVLINK_MAX_LINKS):
        if not answer(nvml, nvml.nvmlDeviceGetNvLinkState, handle, link):
            continue
        remote = answer(nvml, nvml.nvmlDeviceGetNvLinkRemotePciInfo, handle, link)
        address = "" if remote is None else address_of(remote)
        if answer(nvml, nvml.nvmlDeviceGetNvLinkRemoteDeviceType, handle, link) == nvml.NVML_NVLINK_DEVICE_TYPE_SWITCH:
            end = "NVSwitch"
        else:
            end = f"GPU {addresses.index(address)}" if address in addresses else address or "unknown"
        entry = found.setdefault(end, {"to": end, "links": 0, "version": answer(nvml, nvml.nvmlDeviceGetNvLinkVersion, handle, link)})
        entry["links"] += 1
    return list(found.values())


def gpu_of(nvml, index, handle, addresses, sysfs, allowed):
    """One GPU."""
    memory = answer(nvml, nvml.nvmlDeviceGetMemoryInfo, handle)
    c2c = answer(nvml, nvml.nvmlDeviceGetC2cModeInfoV, handle)
    mig = answer(nvml, nvml.nvmlDeviceGetMigMode, handle)
    device = sysfs / "bus/pci/devices" / (addresses[index] or "none")
    local = set(cpus_of(read(device / "local_cpulist")))
    return {
        "index": index,
        "name": nvml.nvmlDeviceGetName(handle),
        "capability": "{}.{}".format(*nvml.nvmlDeviceGetCudaComputeCapability(handle)),
        "memory_bytes": None if memory is None else memory.total,
        "pci": addresses[index],
        "pcie_generation": answer(nvml, nvml.nvmlDeviceGetCurrPcieLinkGeneration, handle),
        "pcie_generation_max": answer(nvml, nvml.nvmlDeviceGetMaxPcieLinkGeneration, handle),
        "pcie_width": answer(nvml, nvml.nvmlDeviceGetCurrPcieLinkWidth, handle),
        "numa_node": int(read(device / "numa_node", str(UNKNOWN))),
        "memory_node": answer(nvml, nvml.nvmlDeviceGetNumaNodeId, handle),  # the GPU's own memory as a node, on Grace
        "near_cpus": list_of(local),
        "near_allowed_cpus": list_of(local & allowed),
        "c2c": None if c2c is None else bool(c2c.isC2cEnabled),
        "mig": None if mig is None else bool(mig[0]),
        "nvlinks": nvlinks_of(nvml, handle, addresses),
    }


def pairs_of(nvml, handles):
    """For each two GPUs: the nearest thing above both in the PCIe tree, and whether they can read each other's memory, and over what."""
    found = []
    for a, first in enumerate(handles):
        for b, second in list(enumerate(handles))[a + 1 :]:
            over = [
                name
                for name, index in (("NVLink", nvml.NVML_P2P_CAPS_INDEX_NVLINK), ("PCIe", nvml.NVML_P2P_CAPS_INDEX_PCI))
                if answer(nvml, nvml.nvmlDeviceGetP2PStatus, first, second, index) == nvml.NVML_P2P_STATUS_OK
            ]
            reads = answer(nvml, nvml.nvmlDeviceGetP2PStatus, first, second, nvml.NVML_P2P_CAPS_INDEX_READ)
            ancestor = answer(nvml, nvml.nvmlDeviceGetTopologyCommonAncestor, first, second)
            found.append({
                "gpus": [a, b],
                "common_ancestor": ANCESTORS.get(ancestor, "unknown"),
                "peer_reads": None if reads is None else reads == nvml.NVML_P2P_STATUS_OK,
                "peer_over": over,
            })  # fmt: skip
    return found


def topology(nvml=pynvml, sysfs=Path("/sys"), allowed=None):
    """All of it, as JSON could hold it; `allowed` are the cores that this process may use. Without NVML there are no GPUs, and a note."""
    allowed = os.sched_getaffinity(0) if allowed is None else set(allowed)
    found = {"architecture": platform.machine(), "nodes": nodes_of(sysfs, allowed), "gpus": [], "pairs": [], "notes": []}
    with nvml_session(nvml) as failure:
        if failure:
            found["notes"].append(f"no GPU is seen: {failure}")
            return found
        handles = [nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())]
        pci = [answer(nvml, nvml.nvmlDeviceGetPciInfo, handle) for handle in handles]
        addresses = ["" if one is None else address_of(one) for one in pci]
        found["gpus"] = [gpu_of(nvml, index, handle, addresses, sysfs, allowed) for index, handle in enumerate(handles)]
        found["pairs"] = pairs_of(nvml, handles)
    return found


def said(value, yes="yes", no="no"):
    """A value that may be missing, in words."""
    return "unknown" if value is None else (yes if value else no) if isinstance(value, bool) else str(value)


def lines(found):
    """The table: nodes, then GPUs, then pairs of GPUs."""
    for node in found["nodes"]:
        memory = "unknown" if node["memory_bytes"] is None else f"{node['memory_bytes'] / 2**30:.0f} GiB"
        usable = f"of which allowed {node['allowed_cpus'] or 'none'}"
        yield f"node {node['node']}: cores {node['cpus'] or 'none'}, {usable}; memory {memory}; distances {node['distances']}"
    for gpu in found["gpus"]:
        memory = "unknown" if gpu["memory_bytes"] is None else f"{gpu['memory_bytes'] / 2**30:.0f} GiB"
        yield f"GPU {gpu['index']}: {gpu['name']}, compute capability {gpu['capability']}, memory {memory}, PCI {gpu['pci'] or 'unknown'}"
        link = f"generation {said(gpu['pcie_generation'])} of {said(gpu['pcie_generation_max'])}, {said(gpu['pcie_width'])} lanes"
        node = "unknown" if gpu["numa_node"] == UNKNOWN else gpu["numa_node"]
        yield f"  PCIe {link}; NUMA node {node}, near cores {gpu['near_cpus'] or 'unknown'}"
        ends = ", ".join(f"{link['links']} to {link['to']}" for link in gpu["nvlinks"]) or "none up"
        yield f"  NVLink {ends}; NVLink-C2C {said(gpu['c2c'])}; MIG {said(gpu['mig'], 'on', 'off')}"
    for pair in found["pairs"]:
        first, second = pair["gpus"]
        over = f" over {', '.join(pair['peer_over'])}" if pair["peer_over"] else ""
        reads = said(pair["peer_reads"])
        yield f"GPU {first} and GPU {second}: below {pair['common_ancestor']}; peer access {reads}{over}"
    yield from found["notes"]


def main(arguments=None):
    """Print what was found; 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of the table")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="draw it, too")
    asked = parser.parse_args(arguments)
    if asked.svg and not asked.svg.parent.is_dir():
        parser.error(f"--svg {asked.svg}: found no folder {asked.svg.parent}; expected one that exists")
    found = topology()
    print(json.dumps(found, indent=2) if asked.json else "\n".join(lines(found)))
    if asked.svg:
        asked.svg.write_text(drawn(found), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

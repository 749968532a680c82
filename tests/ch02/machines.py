"""Machines that the tests of chapter 2 describe: two GPUs of which sysfs knows nodes, joined by NVLinks, and a superchip."""

from types import SimpleNamespace

import pynvml

from tests.support.fake_nvml import FakeGpu, FakeNvml

ADDRESSES = ("00000000:18:00.0", "00000000:9A:00.0")


def sysfs_at(folder, nodes=("0-3", "4-7"), near=(1, 0)):
    """A sysfs in `folder`: the cores of each node, and the node of each GPU; -1 is unknown."""
    for number, cpus in enumerate(nodes):
        node = folder / "devices/system/node" / f"node{number}"
        node.mkdir(parents=True)
        (node / "cpulist").write_text(f"{cpus}\n")
        (node / "meminfo").write_text(f"Node {number} MemTotal:       16777216 kB\nNode {number} MemFree: 1 kB\n")
        (node / "distance").write_text(" ".join("10" if other == number else "21" for other in range(len(nodes))) + "\n")
    for address, node in zip(ADDRESSES, near, strict=False):
        device = folder / "bus/pci/devices" / f"0000{address[8:].lower()}"
        device.mkdir(parents=True)
        (device / "numa_node").write_text(f"{node}\n")
        (device / "local_cpulist").write_text(f"{nodes[node] if node >= 0 else ''}\n")
    return folder


def link_to(address, links, kind):
    """NVML's answers about `links` NVLinks that all end at `address`, a GPU's or an NVSwitch's."""

    def of_link(value):
        def query(link):
            if link >= links:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_INVALID_ARGUMENT)
            return value

        return query

    return {
        "NvLinkState": of_link(1),
        "NvLinkRemotePciInfo": of_link(SimpleNamespace(busId=address)),
        "NvLinkRemoteDeviceType": of_link(kind),
        "NvLinkVersion": of_link(4),
    }


def two_gpus(kind=pynvml.NVML_NVLINK_DEVICE_TYPE_GPU, peers=pynvml.NVML_P2P_STATUS_OK, **answers):
    """An NVML with two GPUs of 18 NVLinks; `answers` are further ones of both."""
    gpus = []
    for index, address in enumerate(ADDRESSES):
        known = {
            "PciInfo": SimpleNamespace(busId=address.encode()),
            "CurrPcieLinkGeneration": 5,
            "MaxPcieLinkGeneration": 5,
            "CurrPcieLinkWidth": 16,
            "MigMode": [0, 0],
            "TopologyCommonAncestor": pynvml.NVML_TOPOLOGY_SYSTEM,
            "P2PStatus": lambda other, index: peers,
            **link_to(ADDRESSES[1 - index], 18, kind),
            **answers,
        }
        gpus.append(FakeGpu(f"GPU-{index}", known))
    return FakeNvml(*gpus)

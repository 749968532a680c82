"""Which NUMA node each GPU hangs on, and a command bound to one: its threads on the node's CPUs, its pages in the node's memory.

./setup.sh python ch03/bind_numa_affinity.py                              lists nodes and GPUs, and changes nothing
./setup.sh python ch03/bind_numa_affinity.py --gpu 0 python serve.py      runs a command on the node of GPU 0
./setup.sh python ch03/bind_numa_affinity.py --node 1 python serve.py     runs it on node 1

GPUs are numbered by PCI address, as nvidia-smi does. CUDA does so too where CUDA_DEVICE_ORDER is PCI_BUS_ID. A GPU whose memory is a
NUMA node of its own, such as one of a GH200 or GB200, hangs on its CPU's node all the same: a node without CPUs can run nothing.
"""

import argparse
import os
import sys
from pathlib import Path

from shared_numa import SYSFS, bind, cpus_by_node, libnuma, node_of

from common.python.command import Arguments, exit_with

NVIDIA = "0x10de"
DISPLAYS = ("0x0300", "0x0302")  # PCI classes: a display controller, and one without a display


def read(path):
    """What a file of sysfs says, or nothing where it is missing."""
    return path.read_text().strip() if path.is_file() else ""


def gpus(sysfs):
    """The PCI address of each NVIDIA GPU, in order."""
    devices = sorted((sysfs / "bus/pci/devices").glob("*"))
    return [d.name for d in devices if read(d / "vendor") == NVIDIA and read(d / "class").startswith(DISPLAYS)]


def spans(cpus):
    """CPUs as the kernel lists them: {0, 1, 2, 8} is "0-2,8"."""
    starts = sorted(cpu for cpu in cpus if cpu - 1 not in cpus)
    ends = sorted(cpu for cpu in cpus if cpu + 1 not in cpus)
    return ",".join(f"{first}-{last}" if first < last else f"{first}" for first, last in zip(starts, ends, strict=True))


def listing(sysfs):
    """A line a node and a line a GPU."""
    nodes = cpus_by_node(sysfs)
    for node, cpus in nodes.items():
        yield f"node {node}: {f'CPUs {spans(cpus)}' if cpus else 'memory alone, no CPU'}"
    having = [node for node, cpus in nodes.items() if cpus]
    for number, pci in enumerate(gpus(sysfs)):
        node = node_of(pci, sysfs)
        told = f"node {node}" if node is not None else "node unknown: the firmware does not tell"
        yield f"GPU {number} at {pci}: {told}"
    if len(having) == 1:
        yield f"one node has CPUs, node {having[0]}: binding to it changes nothing"


def chosen(arguments):
    """The node to bind to. Raises ValueError, in one sentence, where there is none."""
    nodes = cpus_by_node(arguments.sysfs)
    having = ", ".join(str(node) for node, cpus in nodes.items() if cpus) or "none"
    if arguments.node is not None:
        if not nodes.get(arguments.node):
            what = "has no CPUs" if arguments.node in nodes else "is unknown"
            raise ValueError(f"--node: node {arguments.node} {what}; expected one with CPUs: {having}")
        return arguments.node
    found = gpus(arguments.sysfs)
    if not 0 <= arguments.gpu < len(found):
        raise ValueError(f"--gpu: found {len(found)} GPUs, and no GPU {arguments.gpu}; expected a number that nvidia-smi shows")
    node = node_of(found[arguments.gpu], arguments.sysfs)
    if node is None or not nodes.get(node):
        said = "unknown" if node is None else f"{node}, which has no CPUs"
        raise ValueError(f"--gpu: the node of {found[arguments.gpu]} is {said}; expected --node, with one of: {having}")
    return node


def main(arguments=None):
    """List, or bind and become the command; 1 where the node or the GPU is unknown, or binding is refused."""
    parser = Arguments(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--gpu", type=int, help="a GPU, by the number that nvidia-smi shows")
    where.add_argument("--node", type=int, help="a NUMA node")
    parser.add_argument("--sysfs", type=Path, default=SYSFS, help="another tree to read, as a test does")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="what to run; without one, the node's CPUs are printed")
    given = parser.parse_args(arguments)
    if given.gpu is None and given.node is None:
        if given.command:
            parser.error(f"found the command {given.command[0]} and no node; expected --gpu or --node")
        print("\n".join(listing(given.sysfs)))
        return 0
    try:
        node = chosen(given)
        if not given.command:
            print(f"node {node}: CPUs {spans(cpus_by_node(given.sysfs)[node])}")
            return 0
        policies = libnuma()
        bind(node, given.sysfs)
        policies.numa_set_preferred(node)  # outlives exec, and takes memory elsewhere where the node has none left
        os.execvp(given.command[0], given.command)
    except (ValueError, OSError) as error:
        sentence = f"{given.command[0]}: {error.strerror}; expected a program" if isinstance(error, FileNotFoundError) else str(error)
        print(f"error: {sentence}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    exit_with(main)

"""Where a process for each GPU belongs: cores and host memory near it, and the GPUs that it reaches best. Made for GB200, right anywhere.

./setup.sh python ch02/gb200_topology_aware.py [--json]

A Grace CPU owns two GPUs, and each GPU's memory is a NUMA node of its own: memory for the host must not come from there.
"""

import argparse
import json
import sys

from hardware_info import UNKNOWN, cpus_of, list_of, topology

# By compute capability; which of them it is, and not a card in a PCIe slot, only the coherent link tells.
SUPERCHIPS = {"9.0": "GH200", "10.0": "GB200", "10.3": "GB300", "12.1": "GB10"}


def superchip_of(found):
    """The name of the superchip that this machine is made of, or "" where no GPU is linked to an Arm CPU by NVLink-C2C."""
    coherent = [gpu for gpu in found["gpus"] if gpu["c2c"]] if found["architecture"] == "aarch64" else []
    return SUPERCHIPS.get(coherent[0]["capability"], "an unknown superchip") if coherent else ""


def shares_of(cpus, count):
    """`cpus` in `count` runs that differ by at most one core; with fewer cores than runs all get all."""
    if len(cpus) < count:
        return [cpus] * count
    return [cpus[place * len(cpus) // count : (place + 1) * len(cpus) // count] for place in range(count)]


def path_between(gpu, other, found):
    """How `gpu` reaches GPU `other`: NVLink, NVSwitch, PCIe, or the host, which stages copies."""
    ends = [link["to"] for link in gpu["nvlinks"]]
    if f"GPU {other}" in ends:
        return "NVLink"
    (pair,) = [pair for pair in found["pairs"] if set(pair["gpus"]) == {gpu["index"], other}]
    if "NVLink" in pair["peer_over"]:
        return "NVSwitch" if "NVSwitch" in ends else "NVLink"
    return "PCIe" if pair["peer_reads"] else "the host"


def plan_of(found):
    """For each GPU: a process's cores, the node of its memory, the command that binds it, and the way to each other GPU.

    GPUs of one node share its cores. Where the node is unknown, or no core near it is allowed, there is nothing to bind to: `why` says so.
    """
    plans = []
    gpu_memory = {gpu["memory_node"] for gpu in found["gpus"]} - {None}
    for gpu in found["gpus"]:
        near = cpus_of(gpu["near_allowed_cpus"])
        neighbours = [other["index"] for other in found["gpus"] if other["numa_node"] == gpu["numa_node"]]
        plan = {"gpu": gpu["index"], "cpus": "", "memory_node": None, "bind": "", "why": ""}
        if gpu["numa_node"] == UNKNOWN:
            plan["why"] = "the kernel does not know its NUMA node"
        elif gpu["numa_node"] in gpu_memory:
            plan["why"] = f"its NUMA node {gpu['numa_node']} is memory of a GPU"
        elif not near:
            plan["why"] = f"none of the cores near it ({gpu['near_cpus'] or 'unknown'}) is allowed to this process"
        else:
            cpus = list_of(shares_of(near, len(neighbours))[neighbours.index(gpu["index"])])
            node = gpu["numa_node"]
            plan |= {"cpus": cpus, "memory_node": node, "bind": f"numactl --physcpubind={cpus} --membind={node}"}
        others = [other["index"] for other in found["gpus"] if other["index"] != gpu["index"]]
        plan["reaches"] = {other: path_between(gpu, other, found) for other in others}
        plans.append(plan)
    return plans


def lines(found):
    """The plan as text."""
    superchip = superchip_of(found)
    yield f"superchip: {superchip}" if superchip else "superchip: none; SKIPPED: what is of NVLink-C2C needs a Grace CPU"
    for plan in plan_of(found):
        yield f"GPU {plan['gpu']}: " + (plan["bind"] or f"bind nothing: {plan['why']}")
        for other, path in plan["reaches"].items():
            yield f"  to GPU {other}: over {path}"
    if not found["gpus"]:
        yield "SKIPPED: needs an NVIDIA GPU"
    yield from found["notes"]


def main(arguments=None):
    """Print the plan; 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    asked = parser.parse_args(arguments)
    found = topology()
    print(json.dumps({"superchip": superchip_of(found), "gpus": plan_of(found)}, indent=2) if asked.json else "\n".join(lines(found)))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Bandwidth of every link of this machine by copies: host to GPU over PCIe or NVLink-C2C, and GPU to GPU; each way, and both at once.

./setup.sh python ch02/nvlink_c2c_bandwidth_benchmark.py [--mib 256] [--json]

A rate counts the bytes of all directions together, per second; the fastest of TRIES counts. Every copy is checked.
"""

import argparse
import json
import sys
import time
from contextlib import ExitStack
from itertools import combinations

import torch
from hardware_info import topology

TRIES, COPIES = 5, 4  # a try is so many copies in each direction


class Copy:
    """A copy on streams of its own, so that another can go on at the same time."""

    def __init__(self, target, source):
        self.target, self.source = target, source
        self.streams = [torch.cuda.Stream(tensor.device) for tensor in (target, source) if tensor.is_cuda]

    def queue(self):
        """Queue it behind those before it."""
        with ExitStack() as entered:
            for stream in self.streams:
                entered.enter_context(torch.cuda.stream(stream))
            self.target.copy_(self.source, non_blocking=True)


def wait_for_all():
    """Until all GPUs are done."""
    for index in range(torch.cuda.device_count()):
        torch.cuda.synchronize(index)


def rate(copies):
    """Bytes per second of all `copies` together. Raises RuntimeError where one did not arrive."""
    moved = COPIES * sum(copy.source.nbytes for copy in copies)
    fastest = float("inf")
    for _ in range(TRIES + 1):
        wait_for_all()
        begin = time.perf_counter()
        for _ in range(COPIES):
            for copy in copies:
                copy.queue()
        wait_for_all()
        fastest = min(fastest, time.perf_counter() - begin)
    for copy in copies:
        if not torch.equal(copy.target.cpu(), copy.source.cpu()):
            raise RuntimeError(f"a copy from {copy.source.device} to {copy.target.device} did not arrive")
    return moved / fastest


def both_ways(a, b, size, pin=False):
    """Rates from device `a` to `b`, from `b` to `a`, and of both at once, for `size` bytes in each direction."""

    def filled(device):
        made = torch.randint(0, 256, (size,), dtype=torch.uint8, device=device)
        return made.pin_memory() if pin and made.device.type == "cpu" else made

    out, back = Copy(filled(b), filled(a)), Copy(filled(a), filled(b))
    return {"out": rate([out]), "back": rate([back]), "both": rate([out, back])}


def measured(found, size):
    """A row a link: its ends, what it is, and its rates; then what was SKIPPED and what that needs."""
    rows, skipped = [], []
    count = torch.cuda.device_count()
    gpus = {gpu["pci"]: gpu for gpu in found["gpus"]}
    if not count:
        return [], ["SKIPPED: needs an NVIDIA GPU"]
    for index in range(count):
        properties = torch.cuda.get_device_properties(index)
        address = f"{properties.pci_domain_id:04x}:{properties.pci_bus_id:02x}:{properties.pci_device_id:02x}.0"
        is_c2c = bool(gpus.get(address, {}).get("c2c"))
        rates = both_ways(torch.device("cpu"), torch.device("cuda", index), size, pin=True)
        rows.append({"from": "host", "to": f"GPU {index}", "over": "NVLink-C2C" if is_c2c else "PCIe", **rates})
    if not any(row["over"] == "NVLink-C2C" for row in rows):
        skipped.append("NVLink-C2C: SKIPPED, needs a Grace CPU; the link between host and GPU is PCIe here")
    if count < 2:
        skipped.append("GPU to GPU: SKIPPED, needs 2 GPUs; this machine has 1")
    for a, b in combinations(range(count), 2):
        over = "peer access" if torch.cuda.can_device_access_peer(a, b) else "the host"
        rates = both_ways(torch.device("cuda", a), torch.device("cuda", b), size)
        rows.append({"from": f"GPU {a}", "to": f"GPU {b}", "over": over, **rates})
    return rows, skipped


def main(arguments=None):
    """Measure and print; 0, also where there is nothing to measure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--mib", type=int, default=256, help="MiB of a copy (default: 256)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    asked = parser.parse_args(arguments)
    if not 1 <= asked.mib <= 4096:
        parser.error(f"--mib {asked.mib}: expected 1 to 4096")
    rows, skipped = measured(topology(), asked.mib << 20)
    if asked.json:
        print(json.dumps({"mib": asked.mib, "links": rows, "skipped": skipped}, indent=2))
        return 0
    for row in rows:
        rates = ", ".join(f"{way} {row[way] / 1e9:.1f} GB/s" for way in ("out", "back", "both"))
        print(f"{row['from']} to {row['to']} over {row['over']}: {rates}")
    for line in skipped:
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())

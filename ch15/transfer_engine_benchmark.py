"""Our back ends of common.serving.transfer at the sizes that caches move in: rdma_transferengine.json, beside published figures.

    ./setup.sh python ch15/transfer_engine_benchmark.py --out artifacts/rdma_transferengine.json

A process writes pages into the window of another one, then waits until they have left; the owner counts them, and compares their bits.
`here` is what this machine did, over its own memory. `published` is what others report of RDMA between hosts (arXiv:2510.27656). The two
measure different hardware, so the file keeps them apart and no ratio of them is taken.
"""

import argparse
import json
import multiprocessing
import statistics
import sys
import time
from pathlib import Path

import torch

from common.serving.transfer import create_window

KIB = 1024
SIZES = [("pages", 1 * KIB, 64), ("pages", 8 * KIB, 64), ("pages", 64 * KIB, 64)]  # bytes a page, pages a write
SIZES += [("single", size, 1) for size in (64 * KIB, 256 * KIB, 1024 * KIB, 32 * 1024 * KIB)]
PUBLISHED = [
    {"what": "peak throughput, ConnectX-7 and EFA", "value": 400, "unit": "Gbit/s", "source": "abstract of arXiv:2510.27656"},
    {"what": "weights of a model of 1e12 parameters, updated", "value": 1.3, "unit": "s", "source": "abstract of arXiv:2510.27656"},
]


def device_of(rank):
    """GPU `rank`, or the only one, or a CPU."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    torch.cuda.set_device(rank % torch.cuda.device_count())
    return torch.device("cuda", torch.cuda.current_device())


def own(backend, size, count, writes, pipe):
    """The owner: make a window, then say whether all pages have landed with the right bits."""
    device = device_of(1)
    try:
        window, handle = create_window(backend, (1, count, size // 2), torch.int16, device)
    except RuntimeError as error:
        pipe.send(error)
        return
    pipe.send(handle)
    first = pipe.recv()
    window.wait(count * writes)
    expected = torch.arange(count - 1, -1, -1, dtype=torch.int16, device=device) + first
    pipe.send(bool((window.pages[0] == expected[:, None]).all()))
    pipe.recv()  # until the writer has closed its side


def measured(backend, size, count, writes):
    """One row: the median time of a write, or why there is none."""
    context = multiprocessing.get_context("spawn")
    pipe, other = context.Pipe()
    owner = context.Process(target=own, args=(backend, size, count, writes + 1, other))
    owner.start()
    other.close()
    try:
        handle = pipe.recv()
        if isinstance(handle, RuntimeError):
            return {"status": "SKIPPED", "why": str(handle)}
        device = device_of(0)
        peer = create_window(backend, (1, 1, 1), torch.int16, device)[0].open(handle)
        source = torch.arange(3, 3 + count, dtype=torch.int16, device=device)[:, None].expand(-1, size // 2).contiguous()[None]
        pages = torch.arange(count, device=device)
        times = []
        for _ in range(writes + 1):  # the first one opens what is opened once
            began = time.perf_counter()
            peer.write(source, pages, pages.flip(0))
            if device.type == "cuda":
                torch.cuda.synchronize()
            times.append(time.perf_counter() - began)
        pipe.send(3)
        right = pipe.recv()
        del peer  # the owner's memory is let go before the owner ends
        pipe.send(None)
    except EOFError:
        return {"status": "WRONG", "why": "found the owner of the window ended; expected it to say whether its pages are right"}
    finally:
        owner.join(timeout=10)
        if owner.is_alive():
            owner.kill()
            owner.join()
    took = statistics.median(times[1:])
    return {"status": "OK" if right else "WRONG", "us": 1e6 * took, "gbit_per_s": 8e-9 * size * count / took}


def hardware():
    """What the bytes moved over."""
    if not torch.cuda.is_available():
        return "CPU, memory shared by two processes"
    name, several = torch.cuda.get_device_name(0), torch.cuda.device_count() > 1
    return f"{name}, {'from one GPU to another' if several else 'two processes of one GPU'}, CUDA IPC"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("artifacts/rdma_transferengine.json"))
    parser.add_argument("--backend", choices=("ipc", "nixl"), action="append", help="default: both")
    parser.add_argument("--writes", type=int, default=20, help="timed writes of each size")
    parser.add_argument("--most-bytes", type=int, default=32 * 1024 * KIB, help="leave out what moves more bytes a write")
    chosen = parser.parse_args()
    sizes = [row for row in SIZES if row[1] * row[2] <= chosen.most_bytes]
    if chosen.writes < 1 or not sizes:
        parser.error(f"found --writes {chosen.writes}, --most-bytes {chosen.most_bytes}; expected at least 1 write, and {64 * KIB} bytes")
    rows = []
    print(f"{'back end':<10}{'kind':<8}{'bytes':>10}{'pages':>7}{'us':>11}{'Gbit/s':>9}")
    for backend in chosen.backend or ("ipc", "nixl"):
        for kind, size, count in sizes:
            row = {
                "backend": backend,
                "kind": kind,
                "bytes_per_page": size,
                "pages": count,
                **measured(backend, size, count, chosen.writes),
            }
            rows.append(row)
            figures = f"{row['us']:>11.1f}{row['gbit_per_s']:>9.1f}" if "us" in row else ""
            print(f"{backend:<10}{kind:<8}{size:>10}{count:>7}{figures if row['status'] == 'OK' else '  ' + row.get('why', row['status'])}")
            if row["status"] == "SKIPPED":
                break
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    here = {"hardware": hardware(), "writes": chosen.writes, "rows": rows}
    published = {"hardware": "RDMA between hosts, not measured by this project", "figures": PUBLISHED}
    chosen.out.write_text(json.dumps({"here": here, "published": published}, indent=2) + "\n")
    print(f"wrote {chosen.out}")
    return 1 if any(row["status"] == "WRONG" for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())

"""Measures collectives over all ranks and checks their answers: time, algbw and busbw by nccl-tests' definitions.

torchrun --nproc-per-node 8 ch04/bandwidth_benchmark_suite_8gpu.py [--full] [--json FILE] [--plot FILE] [--nccl-tests FILE]

Without --full: four sizes up to 16 MiB. With it: every factor of four from 4 KiB to 1 GiB. Exit 1 if an answer is wrong.
Six collectives are NCCL's. Three go without it, on one host: all-reduces over symmetric memory, an all-gather that copy engines push.
Size is nccl-tests': the bytes of the larger of a rank's two buffers. algbw = size / time. busbw = algbw * factor, where the factor makes
the figure one of the links, whatever the number of ranks. Source: github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md.
A time is that of the slowest rank, by the host's clock around many calls: the median of five rounds, each begun behind a barrier.

FILE of --nccl-tests has what `all_reduce_perf -b 64K -e 1G -f 4 -g 8` printed. Exit 1 if busbw of the largest size is not within 3 %.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path

import torch
import torch.distributed as dist
from shared_bandwidth_plot import drawn
from shared_nccl_tests import busbw_of, compared
from shared_peer_collectives import PEER, reach_each_other
from shared_peer_collectives import prepared as prepared_peer
from shared_torchrun import joined

QUICK = tuple(1 << power for power in (12, 16, 20, 24))
FULL = tuple(1 << power for power in range(12, 31, 2))
WARM, ROUNDS = 5, 5
FACTORS = {  # busbw over algbw, of n ranks
    "all_reduce": lambda n: 2 * (n - 1) / n,
    "all_gather": lambda n: (n - 1) / n,
    "reduce_scatter": lambda n: (n - 1) / n,
    "all_to_all": lambda n: (n - 1) / n,
    "broadcast": lambda n: 1.0,
    "sendrecv": lambda n: 1.0,
    "one_shot_all_reduce": lambda n: 2 * (n - 1) / n,
    "two_shot_all_reduce": lambda n: 2 * (n - 1) / n,
    "pushed_all_gather": lambda n: (n - 1) / n,
}


def prepared(name, here, size):
    """A call of collective `name` on buffers of `size` bytes, and a function that says whether its answer is right.

    Rank r sends values r + 1 (all_to_all: 1 + r + n * target), so that every answer is known.
    """
    n, r = here.ranks, here.rank
    count = size // 4 // n * n

    def filled(elements, value):
        return torch.full((elements,), float(value), device=here.device)

    def is_(tensor, values):
        return all(bool((part == value).all()) for part, value in zip(tensor.chunk(len(values)), values, strict=True))

    if name in PEER:
        call, answer, values = prepared_peer(name, here, count)
        return call, lambda: is_(answer, values)
    whole, part = filled(count, r + 1), filled(count // n, r + 1)
    if name == "all_reduce":

        def right():
            answer = is_(whole, [n * (n + 1) / 2])
            whole.zero_()  # it is in place: sums of sums would overflow
            return answer

        return (lambda: dist.all_reduce(whole)), right
    if name == "all_gather":
        return (lambda: dist.all_gather_into_tensor(whole, part)), lambda: is_(whole, range(1, n + 1))
    if name == "reduce_scatter":
        return (lambda: dist.reduce_scatter_tensor(part, whole)), lambda: is_(part, [n * (n + 1) / 2])
    if name == "all_to_all":
        sent = torch.cat([filled(count // n, 1 + r + n * target) for target in range(n)])
        return (lambda: dist.all_to_all_single(whole, sent)), lambda: is_(whole, [1 + source + n * r for source in range(n)])
    if name == "broadcast":
        return (lambda: dist.broadcast(whole, 0)), lambda: is_(whole, [1])
    received = torch.empty_like(whole)

    def step():
        ops = [dist.P2POp(dist.isend, whole, (r + 1) % n), dist.P2POp(dist.irecv, received, (r - 1) % n)]
        for work in dist.batch_isend_irecv(ops):
            work.wait()

    return step, lambda: is_(received, [(r - 1) % n + 1])


def row(name, here, size, calls):
    """Figures of one collective at one size, the slowest rank's. Collective."""
    step, right = prepared(name, here, size)
    step()
    wrong = torch.tensor(float(not right()), device=here.device)
    wait = torch.cuda.synchronize if here.on_gpu else lambda: None
    for _ in range(WARM):
        step()
    rounds = []
    for _ in range(ROUNDS):
        wait()
        dist.barrier()
        wait()
        begin = time.perf_counter()
        for _ in range(calls):
            step()
        wait()
        rounds.append((time.perf_counter() - begin) / calls)
    slowest = torch.tensor(rounds, dtype=torch.float64, device=here.device)
    for figure in (slowest, wrong):
        dist.all_reduce(figure, op=dist.ReduceOp.MAX)
    return figures(name, here.ranks, size // 4 // here.ranks * here.ranks * 4, slowest.tolist()) | {"wrong": bool(wrong)}


def figures(name, ranks, size, rounds):
    """From the seconds of a call in each round, algbw and busbw in GB/s, 1e9 bytes, as nccl-tests prints them; also the least and most."""
    algbw = size / statistics.median(rounds) / 1e9
    factor = FACTORS[name](ranks)
    return {
        "collective": name,
        "bytes": size,
        "us": statistics.median(rounds) * 1e6,
        "algbw": algbw,
        "busbw": algbw * factor,
        "busbw_min": size / max(rounds) / 1e9 * factor,
        "busbw_max": size / min(rounds) / 1e9 * factor,
    }


def document(here, calls, rows):
    """All that was measured, and by what."""
    software = {"torch": torch.__version__} | ({"nccl": ".".join(map(str, torch.cuda.nccl.version()))} if here.on_gpu else {})
    device = torch.cuda.get_device_name() if here.on_gpu else "CPU"
    backend = "NCCL" if here.on_gpu else "gloo"
    return {"ranks": here.ranks, "backend": backend, "device": device, **software, "calls": calls, "rounds": ROUNDS, "rows": rows}


def measured(here, sizes, flags):
    """The rows of all collectives; rank 0 prints each as it comes."""
    rows = []
    said = print if here.rank == 0 else lambda *_, **__: None
    said(f"# {here.ranks} ranks, {'NCCL' if here.on_gpu else 'gloo'}; GB/s are 1e9 bytes")
    said(f"{'collective':>19} {'bytes':>12} {'us':>12} {'algbw':>9} {'busbw':>9} {'least':>9} {'most':>9}  answer")
    apart = not reach_each_other(here)
    if apart:
        said(f"# left out, as not every GPU can address every other one's memory: {', '.join(PEER)}")
    for name in FACTORS:
        for size in sizes:
            if size > flags.max_bytes or (apart and name in PEER):
                continue
            last = row(name, here, size, flags.calls)
            rows.append(last)
            numbers = " ".join(f"{last[key]:>9.2f}" for key in ("algbw", "busbw", "busbw_min", "busbw_max"))
            said(f"{name:>19} {last['bytes']:>12} {last['us']:>12.1f} {numbers}  {'WRONG' if last['wrong'] else 'right'}", flush=True)
    return rows


def main(arguments=None):
    """Print a row for each collective and size; 0 if all answers are right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="sizes up to 1 GiB")
    parser.add_argument("--calls", type=int, default=20, help=f"of each round; the median of {ROUNDS} rounds counts")
    parser.add_argument("--max-bytes", type=int, default=1 << 30, help="leave out larger sizes")
    parser.add_argument("--json", type=Path, help="write all figures there too")
    parser.add_argument("--plot", type=Path, help="draw bus bandwidth by message size there, as SVG")
    parser.add_argument("--nccl-tests", type=Path, help="compare with what all_reduce_perf printed there")
    flags = parser.parse_args(arguments)
    if flags.calls < 1:
        parser.error(f"--calls: found {flags.calls}; expected at least 1")
    for option, path in (("--json", flags.json), ("--plot", flags.plot)):
        if path and not path.parent.is_dir():
            parser.error(f"{option} {path}: found no folder {path.parent}; expected one that exists")
    try:
        theirs = busbw_of(flags.nccl_tests.read_text(), flags.nccl_tests) if flags.nccl_tests else None
    except (OSError, ValueError) as error:
        parser.error(f"--nccl-tests: {error}")
    with joined() as here:
        if here.ranks < 2:
            parser.error("found 1 rank; expected at least 2, as `torchrun --nproc-per-node 2` starts")
        rows = measured(here, FULL if flags.full else QUICK, flags)
        found = document(here, flags.calls, rows)
        if here.rank == 0 and flags.json:
            flags.json.write_text(json.dumps(found, indent=1))
        if here.rank == 0 and flags.plot:
            flags.plot.write_text(drawn(found, theirs or {}))
        words, close = compared(rows, theirs) if theirs else ("", True)
        if here.rank == 0 and words:
            print(words)
        return 1 if any(each["wrong"] for each in rows) or not close else 0


if __name__ == "__main__":
    sys.exit(main())

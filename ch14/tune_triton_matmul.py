"""Time configurations of the matrix products and print the fastest: `python ch14/tune_triton_matmul.py [pointers|descriptors]`.

A configuration that wins is written into the side that uses it, with the GPU it was found on: a run does not search.
"""

import itertools
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import torch
import triton
from shared_descriptor_matmul import by_descriptors
from shared_matmul import library
from shared_pointer_matmul import by_pointers
from shared_tiles import Tile, multiprocessors

SIZE = 8192
SHARED_BYTES = 227 << 10  # that a block may have on 9.0 and 10.0
KINDS = ("pointers", "descriptors")


def configurations():
    """Tiles whose stages fit shared memory, and whose sums take 32 to 128 registers a thread."""
    for rows, cols, depth, warps, stages in itertools.product((64, 128, 256), (128, 256), (32, 64, 128), (4, 8), (3, 4, 5)):
        fits = 60 << 10 <= 2 * (rows + cols) * depth * stages <= SHARED_BYTES
        if fits and 32 <= rows * cols // (32 * warps) <= 128:
            yield Tile(rows, cols, depth, warps, stages)


def steps_of(kind, tile, a, b):
    """Name and step of each way to launch `tile`: a program a tile and, by descriptors, also a program an SM."""
    if kind == "pointers":
        yield "a program a tile", by_pointers(a, b, tile)
    else:
        yield "a program a tile", by_descriptors(a, b, tile)
        yield "a program an SM", by_descriptors(a, b, tile, programs=multiprocessors(a.device))


def operands(size):
    """Matrices of the workload's distribution."""
    a = torch.randn(size, size, device="cuda", dtype=torch.bfloat16)
    return a, (torch.randn(size, size, device="cuda") * size**-0.5).to(torch.bfloat16)


def compiled(job):
    """Compile `job` for the cache of all processes; whether it can run."""
    try:
        for _, step in steps_of(*job, *operands(256)):
            step()
    except triton.runtime.errors.OutOfResources:
        return False
    return True


def main():
    """Compile all, a process a core; then time one after another, caches cold."""
    kinds = sys.argv[1:] or KINDS
    if unknown := set(kinds) - set(KINDS):
        sys.exit(f"tune_triton_matmul.py: found {', '.join(sorted(unknown))}; expected {' or '.join(KINDS)}")
    jobs = [(kind, tile) for kind in kinds for tile in configurations()]
    with ProcessPoolExecutor(min(len(jobs), os.cpu_count() or 1), mp_context=get_context("spawn")) as pool:
        runs = [job for job, can in zip(jobs, pool.map(compiled, jobs, chunksize=2), strict=True) if can]
    a, b = operands(SIZE)
    rows = [(triton.testing.do_bench(library(a, b), return_mode="median"), "torch.mm", "")]
    for kind, tile in runs:
        for name, step in steps_of(kind, tile, a, b):
            rows.append((triton.testing.do_bench(step, return_mode="median"), f"{kind}, {name}", tile))
            print(f"\r{len(rows)} timed", end="", file=sys.stderr, flush=True)
    print(f"\n{torch.cuda.get_device_name()}, torch {torch.__version__}, triton {triton.__version__}")
    for milliseconds, name, tile in sorted(rows, key=lambda row: row[0])[:25]:
        print(f"{milliseconds * 1e3:8.1f} us  {name:30} {tile}")


if __name__ == "__main__":
    main()

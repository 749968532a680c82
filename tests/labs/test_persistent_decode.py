"""The one kernel of labs/persistent_decode, in the emulation: each of three blocks is a process, and they meet at its barriers.

The emulation runs blocks one after another, which a barrier of all blocks forbids. Here arrays are shared memory, an arrival is a byte at
the end of a file, and block 0 comes late to every barrier, so that a wait that is left out shows as a wrong answer.
"""

import os
import shutil
import sys

import pytest
import torch

from common.python.child.sides import cuda
from common.python.child.sides.compare import compare, poison
from common.python.child.sides.inputs import Inputs
from common.python.child.sides.loader import load_workload
from common.python.project import PROJECT_ROOT
from tests.emulation.emulate import EmulatedSide, _reference, build

LAB = PROJECT_ROOT / "labs/persistent_decode"
BLOCKS = 3
WAITS = 5  # of a layer
BARRIER = r"""
#pragma once
#include <cstdlib>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
inline unsigned own() { return unsigned(atoi(getenv("BLOCK"))); }
struct GridBarrier {
    int round = 0, file = open(getenv("ARRIVALS"), O_WRONLY | O_APPEND), skipped = atoi(getenv("SKIPPED"));
    void arrive() {
        __syncthreads();
        round++;
        if (threadIdx.x > 0) return;
        if (own() == 0) usleep(20000);
        if (write(file, "", 1) != 1) abort();
    }
    void wait() {
        struct stat now = {};
        while (threadIdx.x == 0 && (round - 1) % WAITS != skipped && now.st_size < round * BLOCKS) usleep(100), fstat(file, &now);
        __syncthreads();
    }
};
inline void prefetch_sector(const char*) {}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    folder = tmp_path_factory.mktemp("decode")
    for file in LAB.iterdir():
        shutil.copy(file, folder)
    (folder / "shared_barrier.cuh").write_text(BARRIER.replace("WAITS", str(WAITS)).replace("BLOCKS", str(BLOCKS)))
    for name in ("shared_phases.cuh", "shared_attention.cuh", "optimized_persistent_decode.cu"):
        text = (folder / name).read_text().replace("blockIdx.x", "own()").replace("gridDim.x", str(BLOCKS))
        (folder / name).write_text(text.partition("    cudaLaunchAttribute together")[0])
    with (folder / "optimized_persistent_decode.cu").open("a") as file:
        file.write("    decode<<<1, THREADS, 0, stream>>>(step);\n    return cudaGetLastError();\n}\n")
    side = folder / "optimized_persistent_decode.cu"
    return side, build(side, cache=folder)


def shared(made):
    """`made`, with what it returns in shared memory."""
    return lambda *arguments, **options: made(*arguments, **options).share_memory_()


def decoded(library, shape, tmp_path, monkeypatch, skipped=-1):
    """What is wrong with the logits, the keys and the values after a step of three processes; None if nothing is."""
    workload = load_workload(LAB / "workload_persistent_decode.py")
    for module, name in ((torch, "empty"), (cuda, "empty_in")):
        monkeypatch.setattr(module, name, shared(vars(module)[name]))
    inputs = Inputs(workload, shape, 1, torch.device("cpu"), tmp_path)
    for _, tensor in inputs.tensors():
        tensor.share_memory_()
    inputs.rewrite(2)
    expected = _reference(workload, shape, inputs.values)
    side = EmulatedSide(*library, workload)
    step = side.prepare(inputs.values, shape, stream=lambda: 0)
    for tensor in side.workspace():
        poison(tensor)
    arrivals = tmp_path / "arrivals"
    arrivals.write_bytes(b"")
    children = [_started(step, side, block, arrivals, skipped) for block in range(BLOCKS)]
    failed = [os.waitpid(child, 0)[1] for child in children]
    assert not any(failed)
    logits = next(tensor for tensor in side.workspace() if tensor.shape == expected["logits"].shape)
    return compare("logits", logits, expected["logits"], workload.tolerance("optimized"))[1]


def _started(step, side, block, arrivals, skipped):
    if child := os.fork():
        return child
    os.environ.update(BLOCK=str(block), ARRIVALS=str(arrivals), SKIPPED=str(skipped))
    try:
        step()
        side.finish_call(f"block {block}")
    except AssertionError as failure:
        print(failure, file=sys.stderr)
        os._exit(1)
    os._exit(0)


SHAPES = load_workload(LAB / "workload_persistent_decode.py").check_at
LONG = {"layers": 2, "hidden": 64, "heads": 2, "kv": 1, "inner": 88, "vocabulary": 40, "context": 300}  # three chunks a split


@pytest.mark.parametrize("shape", [*SHAPES, LONG])
def test_three_blocks_decode_a_token(library, shape, tmp_path, monkeypatch):
    assert not decoded(library, shape, tmp_path, monkeypatch)


@pytest.mark.parametrize("skipped", range(WAITS))
def test_each_of_a_layers_waits_is_needed(library, skipped, tmp_path, monkeypatch):
    assert decoded(library, SHAPES[1], tmp_path, monkeypatch, skipped)

"""The one kernel of labs/persistent_decode, in the emulation: each of three blocks is a process, and they meet at its barriers.

The emulation runs blocks one after another, which a barrier of all blocks forbids. Here arrays are shared memory, an arrival is a byte at
the end of a file, and block 0 begins each phase late, so that a wait that is left out shows as a wrong answer.
"""

import os
import re
import shutil
import subprocess
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
    GridBarrier() {
        arrive();
        wait();
    }
    void arrive() {
        __syncthreads();
        round++;
        if (threadIdx.x == 0 && write(file, "", 1) != 1) abort();
    }
    void wait() {
        struct stat now = {};
        bool waits = round == 1 || (round - 2) % WAITS != skipped;
        while (threadIdx.x == 0 && waits && now.st_size < round * BLOCKS) usleep(100), fstat(file, &now);
        if (threadIdx.x == 0 && own() == 0) usleep(50000);
        __syncthreads();
    }
};
inline void prefetch_sector(const char*) {}
"""


@pytest.fixture(scope="module", params=["optimized_persistent_decode.cu", "optimized_persistent_decode_without_prefetch.cu"])
def library(tmp_path_factory, request):
    folder = tmp_path_factory.mktemp("decode")
    for file in LAB.iterdir():
        shutil.copy(file, folder)
    (folder / "shared_barrier.cuh").write_text(BARRIER.replace("WAITS", str(WAITS)).replace("BLOCKS", str(BLOCKS)))
    for name in ("shared_phases.cuh", "shared_attention.cuh", "shared_decode.cuh"):
        text = (folder / name).read_text().replace("blockIdx.x", "own()").replace("gridDim.x", str(BLOCKS))
        (folder / name).write_text(text.partition("    cudaLaunchAttribute together")[0])
    with (folder / "shared_decode.cuh").open("a") as file:
        file.write("    decode<PREFETCH><<<1, THREADS, 0, stream>>>(s);\n    return cudaGetLastError();\n}\n")
    side = folder / request.param
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


# The barrier itself, its instructions as C++ atomics, and a block as a thread: between two barriers all have counted as far.
MET = r"""
#include <atomic>
#include <chrono>
#include <cstdio>
#include <thread>
#include <vector>
struct Index { unsigned x; };
thread_local Index threadIdx{0}, blockIdx{0};
Index gridDim{BLOCKS};
#define __device__
inline void __syncthreads() {}
inline std::atomic<unsigned>& shared(unsigned* at) { return *reinterpret_cast<std::atomic<unsigned>*>(at); }
BARRIER
std::atomic<int> early{0};
std::atomic<int> reached[BLOCKS];
void kernel(unsigned block, int meetings) {
    blockIdx.x = block;
    GridBarrier all;
    for (int i = 0; i < meetings; i++) {
        if (block == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));  // whoever does not wait is ahead of it
        reached[block]++;
        all.arrive();
        all.wait();
        for (auto& other : reached) early += other < reached[block];
    }
}
int main() {
    for (int meetings : {1, 40, 21}) {  // launches, of which two leave the top bit set
        std::vector<std::thread> blocks;
        for (auto& each : reached) each = 0;
        for (unsigned block = 0; block < BLOCKS; block++) blocks.emplace_back(kernel, block, meetings);
        for (auto& each : blocks) each.join();
    }
    printf("%d early, %x", early.load(), arrivals);
}
"""
AS_CPP = {
    r"asm volatile\(\"ld.relaxed[^;]*;\" : \"=r\"\(before\)[^;]*;": "before = shared(&arrivals).load(std::memory_order_relaxed);",
    r"asm volatile\(\"red.release[^;]*;[^;]*;": "shared(&arrivals).fetch_add(added, std::memory_order_release);",
    r"do asm volatile\(\"ld.acquire[^;]*;[^;]*;": "do std::this_thread::yield(), now = shared(&arrivals).load(std::memory_order_acquire);",
    r"asm volatile\(\"prefetch[^;]*;[^;]*;": "",
    r"#pragma once|#include <cuda_runtime.h>": "",
}


def met(tmp_path, before="", after=""):
    """What the barrier's program prints, with `after` in place of `before` in the lab's header."""
    text = (LAB / "shared_barrier.cuh").read_text()
    assert before in text
    text = text.replace(before, after)
    for pattern, atomic in AS_CPP.items():
        text = re.sub(pattern, atomic, text)
    assert "asm" not in text
    source, program = tmp_path / "met.cpp", tmp_path / "met"
    source.write_text(MET.replace("BARRIER", text).replace("BLOCKS", str(BLOCKS)))
    subprocess.run(["g++", "-std=c++17", "-O1", "-pthread", str(source), "-o", str(program)], check=True)
    return subprocess.run([str(program)], capture_output=True, text=True, check=True, timeout=60).stdout


def test_all_blocks_meet_at_every_barrier_of_several_launches(tmp_path):
    assert met(tmp_path) == "0 early, 0"


def test_a_barrier_that_nobody_waits_at_is_noticed(tmp_path):
    assert not met(tmp_path, "while ((now & TURN) == before);", "while (false);").startswith("0 early")

"""A trace's events become launches: what the host started once is one call, whatever it ran."""

import subprocess
import sys

import pytest

from common.python.child.device.helpers import HOLDING
from common.python.child.device.trace import host_calls, of_step, read_trace
from common.python.project import PROJECT_ROOT


def host(name, correlation, category="cuda_runtime"):
    return {"ph": "X", "cat": category, "name": name, "ts": 1.0, "dur": 2.0, "args": {"cbid": 211, "correlation": correlation}}


def kernel(name, correlation, start_us, **told):
    launched = {"grid": [4, 2, 1], "block": [128, 1, 1], "shared memory": 512, "registers per thread": 40, "stream": 7}
    args = {"correlation": correlation, **launched, "est. achieved occupancy %": 50, **told}
    return {"ph": "X", "cat": "kernel", "name": name, "ts": start_us, "dur": 3.5, "args": args}


def copy(name, correlation, start_us):
    args = {"correlation": correlation, "bytes": 4096, "stream": 7}
    return {"ph": "X", "cat": "gpu_memcpy", "name": name, "ts": start_us, "dur": 1.25, "args": args}


# As torch's profiler writes them: host before device, in no order of time, with flows and metadata between.
EVENTS = [
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1.0, "dur": 9.0, "args": {"External id": 3}},
    host("cudaLaunchKernel", 11),
    host("cuLaunchKernelEx", 12, "cuda_driver"),
    host("cudaGraphLaunch", 13),
    host("cudaMemcpyAsync", 14),
    host("cudaDeviceSynchronize", 15),
    kernel("gemm(float*)", 13, 130.0),
    kernel("reduce", 13, 120.0),
    copy("Memcpy HtoD (Pinned -> Device)", 14, 140.0),
    kernel("copy(float const*, float*)", 11, 100.0),
    kernel("softmax_row", 12, 110.0),
    {"ph": "s", "id": 11, "cat": "ac2g", "name": "ac2g", "ts": 1.0},
    {"ph": "M", "name": "process_name", "args": {"name": "python"}},
]


def test_kernels_are_launches_in_the_order_of_their_start():
    launches, _ = read_trace(EVENTS)
    assert [launch.kernel for launch in launches] == ["copy(float const*, float*)", "softmax_row", "reduce", "gemm(float*)"]
    first = launches[0]
    assert (first.grid, first.block, first.shared_bytes, first.registers) == ((4, 2, 1), (128, 1, 1), 512, 40)
    assert (first.occupancy_percent, first.cluster) == (50, None)


def test_a_graph_is_one_call_and_its_kernels_are_in_it():
    launches, _ = read_trace(EVENTS)
    assert [(launch.call, launch.in_graph) for launch in launches] == [(11, False), (12, False), (13, True), (13, True)]


def test_spans_are_all_that_the_gpu_did_in_nanoseconds():
    _, spans = read_trace(EVENTS)
    assert [(span.name, span.start_ns, span.end_ns) for span in spans[-2:]] == [
        ("gemm(float*)", 130_000, 133_500),
        ("Memcpy HtoD (Pinned -> Device)", 140_000, 141_250),
    ]
    assert len(spans) == 5
    assert {span.stream for span in spans} == {7}


def test_calls_of_the_host_are_counted_by_name():
    calls = host_calls(EVENTS)
    assert sum(calls.values()) == sum(event.get("cat") in ("cuda_runtime", "cuda_driver") for event in EVENTS if event.get("ph") == "X")
    assert calls["cudaGraphLaunch"] == 1


def test_a_profiler_that_does_not_estimate_occupancy_gives_none():
    events = [kernel("gemm", 1, 1.0)]
    del events[0]["args"]["est. achieved occupancy %"]
    (launch,), _ = read_trace(events)
    assert launch.occupancy_percent is None


@pytest.mark.gpu
def test_a_step_on_this_gpu():
    import torch

    from common.python.child.device.trace import start_tracing, trace
    from common.python.child.distributed import Alone

    start_tracing()
    x = torch.randn(1 << 20, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = (x * 2).exp().sum()
    host = torch.zeros(1 << 20).pin_memory()

    def step():
        x.copy_(host, non_blocking=True)
        graph.replay()
        return captured + 1

    step()
    launches, spans, calls = trace(step, Alone())
    assert sum(count for name, count in calls.items() if "GraphLaunch" in name) == 1
    assert not any("GraphInstantiate" in name for name in calls)
    assert len({launch.call for launch in launches}) == 2
    assert [launch.in_graph for launch in launches] == [True] * (len(launches) - 1) + [False]
    assert len(launches) >= 4
    assert any("HtoD" in span.name for span in spans)
    assert all(launch.registers and launch.block[0] for launch in launches)


def test_the_profiler_does_not_import_the_compiler_which_takes_seconds():
    trace = "from common.python.child.device.trace import profile\nwith profile(use_kineto=True): torch.ones(2) + 1\n"
    program = f"import sys, torch\n{trace}print('torch._dynamo' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", program], cwd=PROJECT_ROOT, capture_output=True, text=True, check=True)

    assert found.stdout.strip() == "False"


def test_the_kernel_that_holds_the_stream_is_not_of_the_step():
    held = [*EVENTS, host("cuLaunchKernel", 16, "cuda_driver"), kernel(HOLDING, 16, 90.0)]
    assert of_step(held) == EVENTS

"""Chapter 11: both sides of a pair run the same kernels, and the demos build with the line they print and check themselves."""

import contextlib
import math
import re
import shutil
import subprocess

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from common.python.child.sides.inputs import Inputs
from common.python.child.sides.loader import import_file, load_workload
from common.python.pairs.workload import call_by_name
from tests.support.cuda_sides import compiled
from tests.support.teeth import CPU, ROOT

CHAPTER = ROOT / "ch11"
SAME_KERNELS = [
    "basic_streams",
    "event_sync",
    "stream_ordered_allocator",
    "stream_priority",
    "warp_specialized_pipeline_multistream",
    "warp_specialized_two_pipelines_multistream",
]
DEMOS = {  # and what each prints where there is a GPU
    "basic_streams": r"16384 polynomials are right; one stream [\d.]+ ms, four streams [\d.]+ ms\n",
    "stream_ordered_allocator": r"1048576 sums are right; 9 allocations in \d+ KiB\n",
}


def launches(side, pair):
    """The launches of a side, without the stream, which is what a pair changes."""
    text = (CHAPTER / f"{side}_{pair}.cu").read_text()
    found = re.findall(r"[\w<>]+<<<[^;]*;|launch_(?:batch|arrival|urgent)\([^;]*\)", text)
    return [re.sub(r",\s*[\w.]*\b(?:stream|streams\[\w+\])\s*(?=>>>|\)+$)", "", launch) for launch in found]


@pytest.mark.parametrize("pair", SAME_KERNELS)
def test_both_sides_launch_the_same_kernels_in_the_same_grids(pair):
    assert launches("baseline", pair)
    assert launches("baseline", pair) == launches("optimized", pair)


@pytest.mark.parametrize("pair", ["stream_priority", "green_contexts"])
def test_the_latency_is_from_the_fork_to_the_end_of_the_last_block(pair):
    workload = load_workload(CHAPTER / f"workload_{pair}.py")
    found = workload.metrics(torch.tensor([1000, 4000, 9500, 3000]))
    assert found[workload.goal].value == 8.5
    assert (found[workload.goal].unit, found[workload.goal].better) == ("us", "lower")


def test_a_request_that_stamped_nothing_has_no_latency():
    metrics = load_workload(CHAPTER / "workload_stream_priority.py").metrics
    for stamps in (torch.tensor([1000, 4000, 0, 3000]), torch.zeros(4, dtype=torch.int64)):
        assert metrics(stamps)["urgent_latency_us"].value == math.inf


def test_the_bulk_is_whole_waves_of_a_hopper():
    shape = load_workload(CHAPTER / "workload_stream_priority.py").time_at
    assert shape["points"] == 24 * 2 * 132 * 1024


def test_the_launches_of_the_tail_waves_are_a_wave_and_a_quarter_each_and_five_together():
    text = (CHAPTER / "shared_one_pipeline.cuh").read_text()
    tile, tiles = map(int, re.search(r"TILE = (\d+), TILES = (\d+);", text).groups())
    workload = load_workload(CHAPTER / "workload_warp_specialized_pipeline_multistream.py")
    blocks = workload.time_at["points"] / (tile * tiles)
    assert blocks == 1.25 * 2 * 132
    assert 4 * blocks == 5 * 2 * 132


def test_the_closed_form_is_the_recurrence():
    workload = load_workload(CHAPTER / "workload_basic_streams.py")
    x = torch.linspace(-0.8, 0.8, 9, dtype=torch.float64)
    before, last = torch.ones(4, 9, dtype=torch.float64), torch.stack([x, 2 * x, 2 * x - 1, 2 * x + 1])
    for degree in range(1, 6):
        torch.testing.assert_close(call_by_name(workload.reference, {"x": x, "degree": degree}, "reference"), last)
        before, last = last, 2 * x * last - before


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
@pytest.mark.parametrize("demo", DEMOS)
def test_a_demo_builds_with_its_own_line_and_checks_itself(demo):
    command, run = (CHAPTER / f"{demo}.cu").read_text().splitlines()[1].removeprefix("// ").rsplit(" && ", 1)
    assert run == f"build/{demo}"
    assert command.startswith("mkdir -p build && ")
    command = command.partition(" && ")[2].replace(run, "{}")
    program = compiled(command, demo, [*CHAPTER.glob("*.cu*"), ROOT / "ch06" / "shared_check.cuh"])
    ended = subprocess.run([program], capture_output=True, text=True, check=False)
    if ended.returncode == 0:
        assert re.fullmatch(DEMOS[demo], ended.stdout)
    else:
        assert "CUDA driver" in ended.stderr or "no CUDA-capable device" in ended.stderr


def test_each_experts_result_is_joined_and_told_to_the_allocator(monkeypatch):
    workload = load_workload(CHAPTER / "workload_streams.py")
    sides = [import_file(CHAPTER / f"{side}_streams.py") for side in ("baseline", "optimized")]
    shape = workload.check_at[1]
    values = Inputs(workload, shape, 1, CPU, ROOT).values
    told, waits = [], []

    class Stream:
        def wait_stream(self, other):
            waits.append((self, other))

    caller = Stream()
    monkeypatch.setattr(torch.cuda, "Stream", Stream)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: caller)
    monkeypatch.setattr(torch.cuda, "stream", contextlib.nullcontext)
    monkeypatch.setattr(torch.Tensor, "record_stream", lambda self, stream: told.append((len(self), stream)))
    first, second = (side.prepare(**values, layers=shape["layers"])() for side in sides)

    assert torch.equal(first, second)
    assert told == [(len(x), caller) for x in values["x"]]
    forks, joins = ([one for one in waits if (one[0] is caller) == is_join] for is_join in (False, True))
    assert [(to, by) for by, to in forks] == joins
    assert len({id(side) for _, side in joins}) == len(joins) == len(values["x"])


def test_all_chunks_are_queued_to_be_copied_before_one_is_scored_in_few_calls():
    workload = load_workload(CHAPTER / "workload_h2d_overlap.py")
    values = Inputs(workload, workload.cpu_at, 1, CPU, ROOT).values
    called = []

    class Calls(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            called.append(func.overloadpacket.__name__)
            return func(*args, **kwargs or {})

    side = import_file(CHAPTER / "optimized_h2d_overlap.py")
    step = side.prepare(**values)
    with Calls():
        step()

    assert called[: side.CHUNKS] == ["copy_"] * side.CHUNKS
    assert called.count("copy_") == side.CHUNKS + 1
    assert len(called) < 100  # a host that queues for longer than the GPU works would set the time

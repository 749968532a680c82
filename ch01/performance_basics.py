"""Four ways to a wrong number, each beside the right one: no warm-up, no synchronization, a warm cache, and one look at noise.

./setup.sh python ch01/performance_basics.py

Right numbers come from the sampler that times the sides of every pair: see common/docs/measuring.md. Ends with 1 if an answer is wrong.
Without a GPU the same is measured on one core of the CPU, where a call returns when it is done, so the second number is not wrong.
"""

import statistics
import sys
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter_ns

import torch

from common import Spec, Workload
from common.python.child.device.sampler import Sampler
from common.python.child.sides.inputs import Inputs
from common.python.child.sides.loader import load_side, load_workload
from common.python.gate.statistics import geometric_interval
from common.python.wording import significant, speedup_text, time_text

CHAPTER = Path(__file__).parent
CALLS = 20  # a sample each, unless a block says otherwise
UNITS = 8  # ratios of two blocks
WARM_S = 2.0  # at most, before a block
COPIES = 64  # of a buffer on a CPU, so that none is in the cache when its time comes again

SUM = Workload(  # 32 MiB fit the L2 of a data-center GPU, 4 MiB a core's share of its CPU's cache
    inputs=lambda rand, values: {"x": rand.uniform(values)},
    outputs=lambda values: {"total": Spec((), torch.float32)},
    reference=lambda x: x.sum(),
    time_at={"values": 8 << 20},
    cpu_at={"values": 1 << 20},
    check_at=({"values": 1},),
    work=lambda values: {"dram_read": 4 * values},
    rtol=1e-5,
    atol=0.0,
    constants=("x",),  # or the harness would write new values before each call, and leave them in the cache
)


class Basics:
    """The device, a folder for inputs, and the step that the first, second and fourth number are of: a side of `ch01:performance`."""

    def __init__(self, device, folder):
        self.device, self.folder = device, folder
        self.workload = load_workload(CHAPTER / "workload_performance.py")
        self.side = CHAPTER / "baseline_performance.py"
        self.shape = self.shape_of(self.workload)

    def shape_of(self, workload):
        """What a workload times on this device."""
        return workload.timed_shapes["default"] if self.device.type == "cuda" else workload.cpu_at

    def wait(self):
        """Until the device has done all that it was given."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()

    def prepared(self):
        """Inputs and a step of the side, with nothing called yet."""
        inputs = Inputs(self.workload, self.shape, 1, self.device, self.folder)
        return inputs, load_side(self.side, self.workload, None, self.device).prepare(inputs.values, self.shape)

    def sampler(self, workload, copies, each=None):
        """The tool's sampler of a step, prepared once or several times, warm."""
        (name,) = workload.outputs(**self.shape_of(workload))
        found = Sampler(workload, copies, self.device, "basics", lambda returned, _: {name: returned}, each)
        found.settle()
        found.warm(0, -1, WARM_S)
        return found


def block(sampler, calls=CALLS):
    """The times of so many calls in ns, by the tool's sampler."""
    samples, _ = sampler.block(1, calls, {}, lambda _: None, sustained=False)
    return [sample.ns for sample in samples]


def timed(call, wait):
    """The time of a call by the clock of the host in ns, and what it returned; `wait` is called before the clock stops."""
    begin = perf_counter_ns()
    returned = call()
    wait()
    return perf_counter_ns() - begin, returned


def say(title, wrong, right, why):
    """One lesson: what each number is, the number, and the ratio of the two."""
    print(f"\n{title}")
    for label, (text, ns) in {"wrong": wrong, "right": right}.items():
        print(f"  {label}  {time_text(ns):>8}  {text}")
    print(f"  {significant(wrong[1] / right[1])}x: {why}")


def answer(basics, inputs, returned):
    """Whether a step's answer is right. A wrong one has no time."""
    tolerance, values = basics.workload.tolerance("baseline"), inputs.values
    expected = basics.workload.reference(values["x"].double(), [weight.double() for weight in values["weights"]])
    return bool(((returned - expected).abs() <= tolerance.atol + tolerance.rtol * expected.abs()).all())


def warm_up_and_synchronization(basics):
    """The first two lessons; returns the step's inputs and the step, or nothing where its answer is wrong."""
    inputs, step = basics.prepared()
    first_ns, returned = timed(step, basics.wait)
    if not answer(basics, inputs, returned):
        return None
    right_ns = statistics.median(block(basics.sampler(basics.workload, [(inputs, step)])))
    right = (f"the median of {CALLS} calls, once two blocks agreed to 2 %", right_ns)
    why = "the first call also loads the library and its kernels, and gets memory"
    say("Warm-up", ("the first call", first_ns), right, why)

    basics.wait()
    queued_ns = statistics.median(timed(step, lambda: None)[0] for _ in range(3))
    basics.wait()
    why = "the host's clock stopped when the launches were queued, not when the GPU had done them"
    right = "events on the GPU around the call, read when it was done"
    if basics.device.type == "cpu":
        why = "a CPU has no queue, so the two differ by noise alone; on a GPU the wrong number is far too small"
        right = "the host's clock, stopped when the call was done"
    say("Synchronization", ("the host's clock around a call, and no waiting", queued_ns), (right, right_ns), why)
    return inputs, step


def cold_cache(basics):
    """The third lesson. A GPU's L2 is flushed before each call; on a CPU calls rotate over more buffers than its cache holds."""
    on_gpu = basics.device.type == "cuda"
    shape = basics.shape_of(SUM)
    made = [Inputs(SUM, shape, seed, basics.device, basics.folder) for seed in range(1 if on_gpu else COPIES)]
    copies = [(inputs, lambda x=inputs.values["x"]: x.sum()) for inputs in made]
    hot = block(basics.sampler(replace(SUM, cache="hot"), copies[:1]), COPIES)
    cold = block(basics.sampler(SUM, copies, 1), COPIES)
    why = "a loop over one small input finds it in the cache, where an application that did other work meanwhile does not"
    size = f"{4 * shape['values'] >> 20} MiB"
    say(
        "Cold cache",
        (f"a sum over {size}, the same again and again", statistics.median(hot)),
        (f"a sum over {size} that are not in the cache", statistics.median(cold)),
        why,
    )


def noise(basics, prepared):
    """The fourth lesson: one side against itself. Blocks alternate A B B A, and a ratio of two blocks is one observation."""
    sampler = basics.sampler(basics.workload, [prepared])
    ratios, singles = [], []
    for unit in range(UNITS):
        first, second = block(sampler), block(sampler)
        a, b = (first, second) if unit % 2 == 0 else (second, first)
        ratios.append(statistics.median(a) / statistics.median(b))
        singles += [x / y for x, y in zip(a, b, strict=True)]
    print("\nNoise")
    print(f"  wrong  one call of A and one of B, the same code: from {min(singles):.3f}x to {max(singles):.3f}x")
    print(f"  right  {UNITS} pairs of blocks, with a 95 % interval: {speedup_text(geometric_interval(ratios))}")
    print("  a change is told from noise where its interval excludes 1. `benchmark_cli run` takes fresh processes for each pair of blocks,")
    print("  since two processes that run the same code differ by a constant; `benchmark_cli noise` finds the smallest change seen here.")


def main():
    """Show the four; 1 if the step's answer is wrong."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if device.type == "cpu":
        torch.set_num_threads(1)
    with TemporaryDirectory() as folder:
        basics = Basics(device, Path(folder))
        on = torch.cuda.get_device_name() if device.type == "cuda" else "one core of this CPU"
        print(f"{basics.side.name} at {basics.shape}, on {on}")
        prepared = warm_up_and_synchronization(basics)
        if prepared is None:
            print(f"error: {basics.side.name}: found an answer outside the workload's tolerance; expected a right one", file=sys.stderr)
            return 1
        cold_cache(basics)
        noise(basics, prepared)
    return 0


if __name__ == "__main__":
    sys.exit(main())

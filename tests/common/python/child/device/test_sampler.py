"""One sample: what happens before the clock starts, what the clock covers, and when warming up ends."""

import dataclasses
import itertools
import subprocess
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch

from common import Spec, Workload
from common.python.child.device import helpers as device_helpers
from common.python.child.device import sampler as timing
from common.python.child.device.driver import mapped
from common.python.child.device.sampler import Sampler
from common.python.child.meeting import Meeting
from common.python.child.sides.host_memory import LateWords
from common.python.child.sides.inputs import Inputs
from common.python.measure.hidden_work import unfinished

CPU = torch.device("cpu")
DEVICE = torch.device("cuda")
WORKLOAD = Workload(
    inputs=lambda rand, n: {"x": rand.normal(n)},
    outputs=lambda n: {"y": Spec((n,), torch.float32)},
    reference=lambda x: x,
    time_at={"n": 64},
    check_at=({"n": 3},),
    work=lambda n: {},
    rtol=0.0,
    atol=0.0,
)


def take(returned, copy):
    return {"y": returned}


def sampler(tmp_path, step_of, copies=1, each=None):
    prepared = [Inputs(WORKLOAD, {"n": 64}, 1, CPU, tmp_path) for _ in range(copies)]
    return Sampler(WORKLOAD, [(inputs, step_of(inputs.values["x"])) for inputs in prepared], CPU, "a test", take, each)


def test_a_sample_covers_the_step_and_not_the_rewriting_of_inputs(tmp_path, monkeypatch):
    rewrite = Inputs.rewrite

    def slow_rewrite(self, seed, *, late=False):
        time.sleep(0.03)
        rewrite(self, seed, late=late)

    monkeypatch.setattr(Inputs, "rewrite", slow_rewrite)
    taken = sampler(tmp_path, lambda x: lambda: time.sleep(0.005)).sample(7)
    assert 5e6 <= taken.ns < 25e6
    assert not taken.void
    assert taken.sm_clock_hz == 0.0


class Ranks:
    """Two ranks, as the second sees them: what the first says, and whether a sample of its own was void, is read from a script."""

    gate = None

    def __init__(self, first=(), void=()):
        self.script, self.voids, self.met, self.asked = iter(first), iter(void), 0, []

    def first(self, flag):
        self.asked.append(flag)
        return next(self.script)

    def any(self, flag):
        return flag or next(self.voids)

    def meet(self):
        self.met += 1


def test_a_sample_begins_when_all_ranks_are_there_with_their_inputs_written(tmp_path):
    met = []
    of_two = sampler(tmp_path, lambda x: lambda: met.append(ranks.met))
    of_two.join(ranks := Ranks())
    of_two.sample(1)
    of_two.sample(2)
    assert met == [2, 4]  # before inputs are rewritten, which a peer may still read, and before the clock


@pytest.mark.parametrize("blocks", [1, 3])
def test_how_often_a_step_is_warmed_up_is_for_rank_0_to_say(tmp_path, blocks):
    of_two = sampler(tmp_path, lambda x: lambda: time.sleep(0.001))
    # Of a block of five: whether the time is up behind each, whether the block is long enough before the last three, whether two agree.
    within = [False, False, *[False, False] * 3]
    of_two.join(Ranks(first=[*([*within, False] * (blocks - 1)), *within, True]))
    done, _, _ = of_two.warm(0, -1, 0.0)  # whatever this one's clock says
    assert done == 5 * blocks


def test_a_sample_that_is_void_on_any_rank_is_taken_again_on_all(tmp_path):
    calls = []
    of_two = sampler(tmp_path, lambda x: lambda: calls.append(1))
    of_two.join(Ranks(void=[True, False, False]))
    of_two.hold = True  # as on a GPU
    samples, void = of_two.block(1, 2, {}, lambda _: None, sustained=False)
    assert (len(samples), void, len(calls)) == (2, 1, 3)


@pytest.mark.parametrize(
    ("said", "held"),
    [
        ([False] * 3, True),  # what each of them can be held; a sample not void on any; and queued in time by all
        ([True], False),
        ([False, True], False),
        ([False, False, True, False, True, False, True], False),  # a peer takes long to queue, whatever is tried
    ],
)
def test_what_one_rank_cannot_hold_none_does(tmp_path, said, held):
    of_two = sampler(tmp_path, lambda x: lambda: None)
    of_two.join(Ranks(void=said))
    of_two.hold = True  # as on a GPU
    of_two.settle()
    assert of_two.hold is held


def test_every_sample_has_inputs_of_its_own_and_every_copy_the_next_seed(tmp_path):
    seen = []
    two = sampler(tmp_path, lambda x: lambda: seen.append(x.clone()), copies=2)
    two.sample(10)
    two.sample(10)
    two.sample(11)
    first, second, again, _, other, _ = seen
    assert torch.equal(first, again)
    assert not torch.equal(first, second)
    assert torch.equal(second, other)  # the second copy of seed 10 has the inputs of seed 11


@pytest.mark.parametrize("mode", ["sample", "sustained_sample"])
def test_the_state_that_a_call_found_is_kept_and_only_calls_change_it(tmp_path, monkeypatch, mode):
    monkeypatch.setattr(timing, "_SUSTAINED_NS", 1_000_000)
    workload = dataclasses.replace(WORKLOAD, reference=torch.add, in_place=("x",), state="evolves", steps=2)
    prepared = [Inputs(workload, {"n": 64}, 1, CPU, tmp_path) for _ in range(2)]
    first = prepared[0].values["x"].clone()
    calls = []

    def step_of(x):
        return lambda: calls.append(x.add_(1)) or x.clone()

    two = Sampler(workload, [(inputs, step_of(inputs.values["x"])) for inputs in prepared], CPU, "a test", take)
    two.sample(3)
    getattr(two, mode)(4)
    assert torch.allclose(prepared[1].values["x"], first + len(calls) // 2, atol=1e-2)
    for (inputs, _), found, returned in zip(two._copies, two.found, two.returned, strict=True):
        assert torch.equal(found["x"] + 1, returned)
        assert torch.equal(returned, inputs.values["x"])


def test_a_batch_is_divided_by_its_calls(tmp_path):
    four = sampler(tmp_path, lambda x: lambda: time.sleep(0.004), copies=4)
    assert four.calls_per_sample == 4
    assert 4e6 <= four.sample(0).ns < 8e6


def test_what_each_copy_returned_is_kept(tmp_path):
    two = sampler(tmp_path, lambda x: lambda: x, copies=2)
    two.sample(3)
    assert [tensor.data_ptr() for tensor in two.returned] == [inputs.values["x"].data_ptr() for inputs, _ in two._copies]


def test_samples_take_turns_at_the_sets_of_copies(tmp_path):
    calls = []
    six = sampler(tmp_path, lambda x: lambda: calls.append(x.data_ptr()) or x, copies=6, each=2)
    assert six.calls_per_sample == 2
    samples, _ = six.block(0, 6, {}, lambda i: calls.append(six.first), sustained=False)
    turns = [calls[i : i + 3] for i in range(0, 18, 3)]
    assert [first for *_, first in turns] == [2, 4, 0, 2, 4, 0]
    assert turns[:3] == turns[3:]
    assert len({address for *addresses, _ in turns for address in addresses}) == 6
    assert [tensor.data_ptr() for tensor in six.returned] == turns[-1][:2]
    assert len(samples) == 6


class Looking:
    """A timer and a room for looks that tell what they were given."""

    def __init__(self):
        self.seen, self.behind = [], {"y": torch.zeros(64)}

    def chill(self):
        pass

    def time(self, calls, hold_ns, look, late):
        returned = [call() for call in calls]
        if look:
            look(returned)
        return timing.Sample(1e3, void=self.void, behind_ns=3e3 if look else 0.0), returned

    def remember(self, taken):
        self.seen.append(("before", *taken.values()))

    def take(self, taken, *, held):
        self.seen.append(("held" if held else "not held", *taken.values()))

    def escaped(self):
        return ["y"]

    def changed(self, taken):
        self.seen.append(("when all is done", *taken.values()))
        return self.late


@pytest.mark.parametrize(
    ("void", "late", "escaped"),
    [(False, False, "early"), (True, False, ""), (False, True, "late"), (True, True, "late")],  # void: when the hold ran out it had run
)
def test_the_call_that_is_looked_at_is_the_one_that_was_chosen(tmp_path, monkeypatch, void, late, escaped):
    looking = Looking()
    looking.void, looking.late = void, late
    monkeypatch.setattr(timing, "TimedLook", lambda answers, kept: looking)
    numbers = itertools.count()
    six = sampler(tmp_path, lambda x: lambda: next(numbers), copies=6, each=2)
    six._take = lambda returned, copy: {"y": (returned, copy)}
    six._timer, six._cuda, six.clock, six.hold = looking, True, "device", True
    monkeypatch.setattr(timing, "_TRIES", 1)
    kept = []
    six.block(0, 4, {2: 1}, lambda i: kept.append(six.kept(1)) if i == 2 else None, sustained=False)
    # Calls 4 and 5 are those of the third sample, on copies 0 and 1; the sample before was on 4 and 5.
    assert looking.seen == [("before", (3, 5)), ("held", (5, 1)), ("when all is done", (5, 1))]
    (only,) = kept
    assert only.outputs["y"].data_ptr() != looking.behind["y"].data_ptr()
    assert only.behind_ns == 3e3
    assert only.escaped == escaped


@pytest.mark.parametrize(
    ("queued_ms", "is_held", "samples"), [((0.1,), True, 1), ((9.0, 0.1, 9.0), True, 2), ((9.0, 9.0, 0.1), True, 3), ((9.0,), False, 3)]
)
def test_a_step_on_which_the_host_works_long_is_not_held(tmp_path, monkeypatch, queued_ms, is_held, samples):
    lengths, taken = itertools.cycle(queued_ms), []  # a first call may take long
    one = sampler(tmp_path, lambda x: lambda: None)
    one.hold = True
    monkeypatch.setattr(one, "sample", lambda seed, *_: taken.append(seed) or timing.Sample(1e3, queued_ns=1e6 * next(lengths)))
    one.settle()
    assert one.hold is is_held
    assert len(taken) == samples


def test_every_copy_is_called_before_a_step_is_held(tmp_path):
    calls = []
    five = sampler(tmp_path, lambda x: lambda: calls.append(x.data_ptr()), copies=5, each=1)
    five.hold = True
    five.settle()
    assert len(set(calls)) == len(calls) == 5


def test_a_step_that_outlasts_a_hold_is_not_held_again(tmp_path, monkeypatch):
    one = sampler(tmp_path, lambda x: lambda: None)
    one.hold = True
    results = iter([timing.Sample(1.0, void=True)])
    monkeypatch.setattr(one, "sample", lambda seed, *_: next(results))
    one.settle()
    assert not one.hold


@pytest.mark.parametrize(("block_ns", "samples"), [(1 << 60, 5), (0, 2)])
def test_warming_up_ends_when_two_blocks_agree(tmp_path, monkeypatch, block_ns, samples):
    # 5 samples, or of a long step 2, of 9 ms, then of 1 ms: the second block differs from the first, the third agrees with the second
    lengths = itertools.chain([9e6] * samples, itertools.repeat(1e6))
    steady = sampler(tmp_path, lambda x: lambda: None)
    monkeypatch.setattr(timing, "_WARM_BLOCK_NS", block_ns)
    monkeypatch.setattr(steady, "sample", lambda seed, *_: timing.Sample(next(lengths)))
    assert steady.warm(0, calls=-1, seconds=60)[:2] == (3 * samples, 1e6)


def test_warming_up_is_cut_off_in_time_and_counts_when_told(tmp_path):
    restless = sampler(tmp_path, lambda x: lambda: time.sleep(0.02))
    calls, step_ns, whole_ns = restless.warm(0, calls=-1, seconds=0.01)
    assert calls == 1
    assert whole_ns >= step_ns >= 20e6
    assert restless.warm(0, calls=3, seconds=0.0)[0] == 3
    assert restless.warm(0, calls=0, seconds=1.0) == (0, 0.0, 0.0)


def test_a_block_has_its_seeds_in_order_and_tells_between_samples(tmp_path):
    order = []
    two = sampler(tmp_path, lambda x: lambda: order.append(float(x[0])), copies=2)
    samples, void = two.block(100, 3, {}, order.append, sustained=False)
    expected = []
    for i in range(3):
        for copy in range(2):
            inputs = Inputs(WORKLOAD, {"n": 64}, 1, CPU, tmp_path)
            inputs.rewrite(100 + 2 * i + copy)
            expected.append(float(inputs.values["x"][0]))
        expected.append(i)
    assert order == expected
    assert len(samples) == 3
    assert void == 0


def test_a_void_sample_is_taken_again_and_counted(tmp_path, monkeypatch):
    results = iter([timing.Sample(9.0, void=True), timing.Sample(1.0), timing.Sample(2.0)])
    one = sampler(tmp_path, lambda x: lambda: None)
    monkeypatch.setattr(one, "sample", lambda seed, *_: next(results))
    samples, void = one.block(0, 2, {}, lambda i: None, sustained=False)
    assert [sample.ns for sample in samples] == [1.0, 2.0]
    assert void == 1


def test_a_sustained_sample_is_the_mean_of_calls_back_to_back(tmp_path, monkeypatch):
    monkeypatch.setattr(timing, "_SUSTAINED_NS", 50_000_000)
    calls = []

    def step():
        calls.append(1)
        time.sleep(0.001)

    taken = sampler(tmp_path, lambda x: step).sustained_sample(0)
    assert len(calls) >= 16
    assert 1e6 <= taken.ns < 3e6


class Told:
    """Helpers, and an event, that note in their order what they are asked to do."""

    def __init__(self, order):
        self.order, self.expired = order, False

    def __call__(self, enable_timing):
        return self

    def __getattr__(self, name):
        return lambda *arguments: self.order.append(name)

    def elapsed_time(self, stop):
        return 1.0


def words_for(place, order):
    """Late words of an input in pinned memory, which a kernel writes, or in pageable memory, which the host does."""

    class Words(LateWords):
        is_pinned = place == "pinned"

        def write(self):
            order.append("written by the host")

    return Words(*[torch.zeros(1, dtype=torch.int64)] * 3)


@pytest.fixture
def timer(monkeypatch):
    """A timer without a device, and the order of what it does."""
    order = []
    bare = object.__new__(timing.DeviceTimer)
    bare._helpers, bare._stamps = Told(order), [torch.zeros(1, 2, dtype=torch.int64)] * 2
    monkeypatch.setattr(timing, "_Event", Told(order))
    monkeypatch.setattr(timing, "_synchronize", lambda: order.append("synchronize"))
    return bare, order


@pytest.mark.parametrize(
    ("hold_ns", "place", "before"),
    [
        (5, "pinned", ["synchronize", "block", "write_words", "stamp", "record"]),
        (0, "pinned", ["synchronize", "write_words", "stamp", "record"]),
        (0, "pageable", ["synchronize", "written by the host", "stamp", "record"]),
    ],
)
def test_late_words_are_the_last_thing_before_the_clock_starts(timer, hold_ns, place, before):
    """So nobody can fetch them earlier: on a held stream they are not even written while the step is queued."""
    bare, order = timer
    bare.time([lambda: order.append("step")], hold_ns, late=[words_for(place, order)])
    assert order == [*before, "step", "record", "stamp", "release", "synchronize"]


@pytest.mark.parametrize(
    ("hold_ns", "expected"),
    [
        (5, ["synchronize", "block", "stamp", "record", "step", "record", "stamp", "meet", "open", "synchronize"]),
        (0, ["synchronize", "meet", "stamp", "record", "step", "record", "stamp", "open", "synchronize"]),
    ],
)
def test_streams_of_ranks_go_on_when_all_have_queued_or_start_where_all_are(timer, hold_ns, expected):
    bare, order = timer
    bare.together = ranks = Ranks()
    ranks.meet, ranks.gate = lambda: order.append("meet"), Told(order)
    bare.time([lambda: order.append("step")], hold_ns)
    assert order == expected


def test_a_step_that_raises_lets_its_own_stream_go_and_waits_for_nobody(timer):
    bare, order = timer
    bare.together = ranks = Ranks()
    ranks.meet, ranks.gate = lambda: order.append("meet"), Told(order)
    with pytest.raises(ZeroDivisionError):
        bare.time([lambda: 1 / 0], 5)
    assert order == ["synchronize", "block", "stamp", "record", "open", "synchronize"]


@pytest.mark.parametrize("place", ["pinned", "pageable"])
def test_by_the_hosts_clock_late_words_are_written_before_it_starts(tmp_path, timer, monkeypatch, place):
    bare, order = timer
    one = sampler(tmp_path, lambda x: lambda: order.append("step"))
    monkeypatch.setattr(timing, "_clock_ns", lambda: order.append("clock") or len(order))
    one._timer, one._cuda, one._chill = bare, True, lambda: order.append("chill")
    one._copies[0][0].rewrite = lambda seed, late: order.append("rewritten but for late words" if late else "rewritten")
    one._copies[0][0].late_words = [words_for(place, order)]
    one.sample(0)
    written = "write_words" if place == "pinned" else "written by the host"
    assert order == ["rewritten but for late words", "chill", written, "synchronize", "clock", "step", "synchronize", "clock"]


def test_a_second_of_calls_has_whole_inputs(tmp_path, monkeypatch):
    monkeypatch.setattr(timing, "_SUSTAINED_NS", 1_000_000)
    one = sampler(tmp_path, lambda x: lambda: x)
    how = []
    one._copies[0][0].rewrite = lambda seed, late=False: how.append(late)
    one.sustained_sample(0)
    assert how == [False]


@pytest.mark.parametrize(("where", "held"), [("device", True), ("pinned", True), ("pageable", False)])
def test_no_stream_is_held_where_memory_is_pageable(tmp_path, monkeypatch, where, held):
    monkeypatch.setattr(timing, "DeviceTimer", lambda device, l2: None)
    inputs = dataclasses.replace(WORKLOAD, inputs=lambda rand, n: {"x": rand.normal(n, where=where)})
    outputs = dataclasses.replace(WORKLOAD, outputs=lambda n: {"y": Spec((n,), torch.float32, where)})
    for workload in (inputs, outputs):
        made = Inputs(workload, {"n": 64}, 1, CPU, tmp_path)
        assert Sampler(workload, [(made, lambda: None)], DEVICE, "a test", take).hold is held


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
def test_the_device_helpers_assemble(architecture, tmp_path):
    source = Path(device_helpers.__file__).with_suffix(".ptx")
    try:
        subprocess.run(["ptxas", f"-arch={architecture}", source, "-o", tmp_path / "helpers.cubin"], check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("no ptxas on PATH")
    assert (tmp_path / "helpers.cubin").stat().st_size > 0


def test_the_clock_comes_from_sms_seen_in_both_stamps():
    before = torch.tensor([[1000, 5000], [0, 0], [1000, 9000]])
    after = torch.tensor([[3000, 8000], [4000, 9000], [3000, 13000]])
    assert device_helpers.sm_clock_hz(before, after) == pytest.approx(1.5e9)  # the lower median of 1.5 and 2.0; SM 1 was not seen before
    assert device_helpers.sm_clock_hz(torch.zeros(2, 2, dtype=torch.int64), after[:2]) == 0.0


@pytest.mark.gpu
class TestOnAGpu:
    @pytest.fixture(autouse=True)
    def context(self):
        torch.cuda.synchronize()  # what is asked of the driver needs one, and torch makes it when it is first needed

    @pytest.fixture
    def inputs(self, tmp_path):
        return Inputs(WORKLOAD, {"n": 64}, 1, DEVICE, tmp_path)

    def test_a_held_stream_waits_for_its_release(self):
        helpers = device_helpers.device_helpers()
        done = torch.cuda.Event()
        helpers.block(2_000_000_000)
        done.record()
        time.sleep(0.02)
        assert not done.query()
        helpers.release()
        torch.cuda.synchronize()
        assert done.query()
        assert not helpers.expired

    def test_a_hold_that_runs_out_says_so(self):
        helpers = device_helpers.device_helpers()
        helpers.block(5_000_000)
        torch.cuda.synchronize()
        assert helpers.expired
        helpers.release()

    def test_spin_takes_the_time_it_is_told(self):
        helpers = device_helpers.device_helpers()
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        helpers.spin(2_000_000)  # meanwhile all that follows is queued: on an idle device, `start` would not wait for the launch after it
        start.record()
        helpers.spin(2_000_000)
        stop.record()
        torch.cuda.synchronize()
        assert start.elapsed_time(stop) == pytest.approx(2.0, rel=0.02)

    def test_stamps_give_a_clock_that_an_sm_can_have(self):
        helpers = device_helpers.device_helpers()
        count = torch.cuda.get_device_properties(0).multi_processor_count
        first, second = (torch.zeros(count, 2, dtype=torch.int64, device="cuda") for _ in range(2))
        helpers.stamp(first)
        helpers.spin(1_000_000)
        helpers.stamp(second)
        torch.cuda.synchronize()
        assert 0.2e9 < device_helpers.sm_clock_hz(first.cpu(), second.cpu()) < 4e9

    def test_a_step_that_waits_for_the_device_cannot_be_held(self, inputs):
        waiting = Sampler(WORKLOAD, [(inputs, lambda: inputs.values["x"].sum().item())], DEVICE, "a test", take)
        waiting.settle()
        assert not waiting.hold
        assert waiting.sample(1).ns > 0
        held = Sampler(WORKLOAD, [(inputs, inputs.values["x"].sum)], DEVICE, "a test", take)
        held.settle()
        assert held.hold

    def test_queueing_is_told_while_the_stream_is_held_and_a_sleeping_step_is_not_held(self, inputs):
        sleepy = Sampler(WORKLOAD, [(inputs, lambda: time.sleep(0.001) or inputs.values["x"].sum())], DEVICE, "a test", take)
        assert 1e6 < sleepy.sample(1).queued_ns < 2e6
        sleepy.settle()
        assert sleepy.hold
        asleep = Sampler(WORKLOAD, [(inputs, lambda: time.sleep(0.005) or inputs.values["x"].sum())], DEVICE, "a test", take)
        asleep.settle()
        assert not asleep.hold
        sample = asleep.sample(1)
        assert sample.ns > 5e6
        assert sample.queued_ns == 0.0

    def test_a_held_sample_does_not_contain_the_launch_latency(self, inputs):
        x = inputs.values["x"]

        def step():
            for _ in range(10):
                torch.mul(x, 2.0)

        both = {}
        for hold in (True, False):
            one = Sampler(WORKLOAD, [(inputs, step)], DEVICE, "a test", take)
            one.hold = hold
            one.warm(0, 10, 1.0)
            both[hold] = min(one.sample(i).ns for i in range(10))
        assert both[True] < both[False]

    def test_a_gate_holds_a_stream_until_a_peer_opens_it(self):
        with TemporaryDirectory(dir="/dev/shm") as folder:  # CUDA maps no page of a file on a disk
            mine, peers = (Meeting(f"{folder}/page", rank, 2) for rank in range(2))
        helpers, done = device_helpers.device_helpers(), torch.cuda.Event()
        helpers.block(2_000_000_000, device_helpers.Gate(mine.gate, mapped(mine.gate)))
        done.record()
        helpers.release()  # which opens this process's own
        time.sleep(0.05)
        assert not done.query()
        peers.gate.value = 1
        torch.cuda.synchronize()
        assert not helpers.expired

    @pytest.mark.parametrize("hold", [True, False])
    @pytest.mark.parametrize("joined", [True, False])
    def test_work_that_the_clock_does_not_wait_for_has_escaped(self, inputs, hold, joined):
        y, aside, helpers = torch.empty(64, device=DEVICE), torch.cuda.Stream(), device_helpers.device_helpers()

        def step():
            now = torch.cuda.current_stream()
            aside.wait_stream(now)
            with torch.cuda.stream(aside):
                helpers.spin(1_000_000)
                torch.mul(inputs.values["x"], 2.0, out=y)
            if joined:
                now.wait_stream(aside)
            return y

        one = Sampler(WORKLOAD, [(inputs, step)], DEVICE, "a test", take)
        one.hold = hold
        one.warm(0, 10, 1.0)
        kept = []
        one.block(0, 6, {2: 0, 3: 0, 5: 0}, lambda i: kept.append(one.kept(0)), sustained=False)
        assert [kept[i].escaped for i in (2, 3, 5)] == 3 * ["" if joined else "late"]
        assert kept[0].behind_ns == kept[1].behind_ns == kept[4].behind_ns == 0  # where nobody looks nothing is recorded
        looks = [kept[i].behind_ns for i in (2, 3, 5)]
        assert bool(unfinished(looks, 1e6, held=hold)) is not joined, looks
        # without a hold the spin runs while the host still issues what is behind it, which takes it some 75 µs
        assert joined or all(500_000 <= each < 2_000_000 for each in looks), looks

    @pytest.mark.parametrize(("joined", "escaped"), [(True, ""), (False, "early")])
    def test_a_look_sees_work_that_does_not_wait_for_its_stream(self, inputs, joined, escaped):
        y, aside = torch.empty(64, device=DEVICE), torch.cuda.Stream()

        def step():
            if joined:
                aside.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(aside):
                y.copy_(inputs.values["x"])
            if joined:
                torch.cuda.current_stream().wait_stream(aside)
            return y

        one = Sampler(WORKLOAD, [(inputs, step)], DEVICE, "a test", take)
        one.warm(0, 3, 1.0)
        found = []
        one.block(3, 3, {1: 0}, lambda i: found.append(one.kept(0)) if i == 1 else None, sustained=False)
        (only,) = found
        assert only.escaped == escaped
        inputs.rewrite(4)
        assert torch.equal(only.outputs["y"], inputs.values["x"])

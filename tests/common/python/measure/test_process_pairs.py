"""A measurement's units, order, goals and end, on workers that answer what a test says instead of running anything."""

import itertools
import math
import os
import time
from contextlib import AbstractContextManager
from types import SimpleNamespace

import pytest

from common.python.errors import SideFailure, Status
from common.python.measure import process_pairs
from common.python.measure import stopping as throttle
from common.python.measure.process_pairs import Measurement, draw_looks
from common.python.processes import messages
from common.python.results import Check, OutputError, ReportedMetric, StopReason, TelemetrySummary
from common.python.settings import Settings
from tests.support.plans import H200, a_plan, standards_for


class Worker(AbstractContextManager):
    """One side: its samples all take `ns`, and it needs `bytes` of memory."""

    ranks = 1

    def __init__(self, session, side):
        self.session, self.side = session, side

    def __exit__(self, *_):
        self.session.events.append("gone")

    def begin_close(self):
        self.session.ended.append(self.side)
        self.session.events.append("close")

    def begin_open(self):
        self.session.events.append("open")

    def finish_open(self):
        self.session.events.append("opened")

    def choose_stream(self):
        self.session.events.append("choose")

    def begin_load(self):
        self.session.forked.append(self.side)
        self.session.events.append("load")

    def finish_load(self):
        self.session.events.append("loaded")

    def begin_prepare(self, shape, seed, live_seed, copies, *, call=False):
        self.session.prepared.append(copies)
        self.session.called.append(call)
        self.session.prepare_seeds.append(seed)

    def finish_prepare(self):
        return messages.Prepared(nonce="", seconds=self.session.prepare_s)

    def prepare(self, shape, seed, live_seed, copies=1):
        self.begin_prepare(shape, seed, live_seed, copies)
        return self.finish_prepare()

    def ask(self, request, expected, seconds):
        ns = self.session.ns[self.side]
        if isinstance(request, messages.Warm):
            self.session.cores.append(request.cores)
            self.session.calls_per_sample[self.side] = request.calls_per_sample
            metrics = {"tokens": ReportedMetric(value=self.session.figures[self.side], unit="1/s", better=self.session.better)}
            return messages.Warmed(
                nonce="",
                calls=9,
                holds=len(self.session.forked) <= self.session.held_sides,
                step_ns=ns,
                sample_ns=self.session.sample_ns[self.side],
                call_s=self.session.call_s,
                peak_memory_bytes=int(self.session.figures[self.side]),
                metrics=metrics,
                numa_nodes=self.session.numa_nodes.get(self.side, []),
            )
        if isinstance(request, messages.Weigh):
            self.session.events.append("weigh")
            return messages.Weighed(nonce="", allocated_bytes=int(self.session.figures[self.side]), outside_bytes=self.session.outside)
        self.session.blocks.append(self.side)
        ns += 0.0 if request.hold else self.session.launch_ns
        behind_ns = self.session.behind_ns.get(self.side, 1_700.0)
        picks = [messages.Call(seed=pick, digest="", modified=[], escaped="", outputs=[], behind_ns=behind_ns) for pick in request.picks]
        time.sleep(
            request.count * self.session.calls_per_sample[self.side] * ns / 1e9 + self.session.step_s.get(self.side, 0.0)
        )  # what it claims, too
        samples, queued_ns = [ns] * request.count, self.session.queued_ns.get(self.side, 0.0)
        return messages.Timed(nonce="", samples_ns=samples, sm_clock_hz=[], queued_ns=queued_ns, void=0, picks=picks, notes=[])


class Session:
    """The means of a run; `figures` are each side's memory, error or tokens."""

    def __init__(self, plan, **choices):
        self.settings = Settings(**choices)
        self.deadline, self.reversed, self.prepare_s, self.call_s, self.better = math.inf, False, 0.01, 0.01, "higher"
        self.sample_ns = dict.fromkeys(plan.sides, 1e7)
        self.ns = {"baseline": 80_000.0, "optimized": 40_000.0}
        self.figures = {"baseline": 3.0, "optimized": 2.0}
        self.compiled = False
        self.forked, self.ended, self.blocks, self.told, self.seeds = [], [], [], [], 0
        self.calls_per_sample = {}
        self.outside, self.held_sides, self.launch_ns = 0, math.inf, 0.0
        self.prepare_seeds, self.judged_seeds, self.called = [], [], []
        self.prepared, self.events, self.step_s, self.queued_ns, self.behind_ns = [], [], {}, {}, {}
        self.numa_nodes, self.cores = {}, []
        self.tell = self.told.append

    def new_seed(self):
        self.seeds += 1
        return self.seeds

    def dump_prefix(self):
        return "p"

    def is_cold(self, plan):
        return plan.is_cold or self.settings.cold_start

    def is_sustained(self, plan):
        return plan.is_sustained or self.settings.sustained

    def cores_for(self, plan, rank):
        return ((0, 1), (2, 3))[rank]

    def starts_compiler(self, plan, side):
        return self.compiled

    def fork_side(self, plan, side, cold=False):
        return Worker(self, side)


class Judging:
    def __init__(self, session):
        self.session = session

    def judge(self, side, shape, prepare_seed, calls, timed):
        self.session.judged_seeds.append(prepare_seed)
        error = OutputError(max_abs=0.0, max_rel=0.0, mismatched=0.0, rms_rel=self.session.figures[side])
        return [Check(shape=shape, seed=call.seed, timed_call=timed, outputs={"y": error}) for call in calls]


@pytest.fixture
def measured(tmp_path):
    def run(session_changes=None, goal="time", conditions=None, gpus=(), **choices):
        plan = a_plan(tmp_path, goal=goal, gpus=gpus, **conditions or {})
        session = Session(plan, **choices)
        for name, value in (session_changes or {}).items():
            setattr(session, name, value)
        return Measurement(session, plan, "default", standards_for(plan, **choices), Judging(session)).run(), session

    return run


def test_process_pairs_of_a_self_reported_figure_have_constants_of_their_own(measured):
    found, session = measured(goal="tokens")
    of_units = dict.fromkeys(session.prepare_seeds)
    assert len(of_units) == len(found.timing.units)
    assert all(session.prepare_seeds.count(seed) % 2 == 0 for seed in of_units)  # the same for both sides
    assert list(dict.fromkeys(session.judged_seeds)) == list(of_units)


def test_process_pairs_of_a_time_have_the_same_constants(measured):
    _, session = measured()
    assert len({*session.prepare_seeds, *session.judged_seeds}) == 1


def test_roles_swap_within_a_unit_and_between_units(measured):
    found, session = measured()

    assert found.timing.units[0].order == ("baseline", "optimized", "optimized", "baseline")
    assert found.timing.units[1].order == ("optimized", "baseline", "baseline", "optimized")
    assert session.forked == session.ended == ["baseline", "optimized", "optimized", "baseline"] * 3
    assert (len(found.timing.units), found.timing.stop_reason) == (6, StopReason.PRECISE)
    assert found.timing.speedups["optimized"].estimate == pytest.approx(2.0)
    assert list(found.timing.time_ns) == ["baseline", "optimized"]


@pytest.mark.parametrize("repeat", [1, 2])
@pytest.mark.parametrize("held_units", [0, 1, 2, math.inf])
def test_units_with_and_without_launch_latency_are_never_mixed(measured, held_units, repeat):
    changes = {"held_sides": 2 * held_units, "launch_ns": 40_000.0}

    timing = measured(changes, repeat=repeat)[0].timing

    assert timing.launch_latency_hidden is (held_units == math.inf)
    expected = 80_000.0 if timing.launch_latency_hidden else 120_000.0
    assert {ns for unit in timing.units for block in unit.blocks["baseline"] for ns in block.samples_ns} == {expected}
    orders = [unit.order for unit in timing.units]
    assert sum(order[0] == "baseline" for order in orders) == len(orders) / 2


def test_a_second_measurement_begins_the_other_way_round(measured):
    found, _ = measured({"reversed": True})

    assert found.timing.units[0].order == ("optimized", "baseline", "baseline", "optimized")
    assert found.timing.units[1].order == ("baseline", "optimized", "optimized", "baseline")


@pytest.mark.parametrize(("clock", "samples"), [("device", 1), ("launch", 3), ("host", 3)])
def test_a_long_step_by_the_hosts_clock_has_more_than_a_sample_a_block(measured, clock, samples):
    found, _ = measured({"sample_ns": {"baseline": 2e8, "optimized": 2e8}}, conditions={"clock": clock})

    assert {len(block.samples_ns) for unit in found.timing.units for side in unit.blocks.values() for block in side} == {samples}


@pytest.mark.parametrize(
    ("baseline_ns", "optimized_ns", "samples"),
    [
        (6e7, 1e6, (1, 60)),  # of one sample of a quick step, a look at it would be the result
        (6e6, 1e5, (10, 64)),
        (1e6, 6e7, (1, 1)),  # the baseline's block is never cheaper a sample, or it would show what a slow side does around its calls
    ],
)
def test_a_quick_side_takes_more_samples_than_a_slow_baseline_and_never_fewer(measured, baseline_ns, optimized_ns, samples):
    found, _ = measured({"sample_ns": {"baseline": baseline_ns, "optimized": optimized_ns}})
    blocks = [(side, len(block.samples_ns)) for unit in found.timing.units for side, taken in unit.blocks.items() for block in taken]

    assert set(blocks) == set(zip(("baseline", "optimized"), samples, strict=True))
    assert len(blocks) == 6 * 4


@pytest.mark.parametrize(("sample_ns", "samples"), [(1e6, 250), (5e7, 5), (1e8, 2), (1e5, 256)])
def test_blocks_of_several_ranks_last_a_quarter_of_a_second(measured, monkeypatch, sample_ns, samples):
    monkeypatch.setattr(process_pairs, "fastest_core", max)
    found, _ = measured({"sample_ns": {"baseline": sample_ns, "optimized": sample_ns}}, conditions={"ranks": 2})

    assert {len(block.samples_ns) for unit in found.timing.units for side in unit.blocks.values() for block in side} == {samples}


@pytest.mark.parametrize(
    ("conditions", "cores"),
    [
        ({"ranks": 2}, [1, 3]),  # of each rank's share one
        ({"ranks": 2, "clock": "launch"}, [1, 3]),
        ({"clock": "launch"}, [max(os.sched_getaffinity(0))]),
        ({"clock": "device"}, []),
        ({"ranks": 2, "device": "cpu"}, []),  # each process has one already
    ],
)
def test_the_thread_that_calls_stays_on_one_core_of_its_share(measured, monkeypatch, conditions, cores):
    monkeypatch.setattr(process_pairs, "fastest_core", max)
    _, session = measured(conditions=conditions)

    assert all(asked == cores for asked in session.cores)


def test_a_fixed_number_of_iterations_is_that_of_every_side(measured):
    found, _ = measured({"sample_ns": {"baseline": 6e7, "optimized": 1e6}}, iterations=5)

    assert {tuple(len(block.samples_ns) for block in taken) for unit in found.timing.units for taken in unit.blocks.values()} == {(3, 2)}


def test_in_each_unit_as_many_timed_calls_of_each_side_are_judged_and_at_least_one(measured):
    found, _ = measured(repeat=4)
    judged = {side: len(checks) for side, checks in found.checks.items()}

    assert judged["baseline"] == judged["optimized"]
    assert 24 <= judged["optimized"] <= 24 * 4


def test_who_has_been_looked_at_is_looked_at_again_in_two_of_three_units():
    drawn = [draw_looks(2) for _ in range(9000)]

    assert min(map(sum, drawn)) == 1
    assert {look for unit in drawn for look in unit} == {0, 1, 2}
    assert sum(sum(unit) > 1 for unit in drawn) / len(drawn) == pytest.approx(2 / 3, abs=0.03)  # six standard deviations
    after_the_first_block = [unit[1] for unit in drawn if unit[0]]
    assert sum(map(bool, after_the_first_block)) / len(after_the_first_block) == pytest.approx(1 / 2, abs=0.05)


@pytest.mark.parametrize("blocks", [1, 2])
def test_no_unit_goes_without_a_look(blocks):
    assert all(any(draw_looks(blocks)) for _ in range(1000))


def test_repeats_are_pooled_and_kept_apart(measured):
    found, _ = measured(repeat=3)

    assert len(found.timing.units) == 18
    assert [speedup.estimate for speedup in found.timing.repeats["optimized"]] == [pytest.approx(2.0)] * 3


@pytest.mark.parametrize(
    ("goal", "better", "gain", "unit", "units"),
    [
        ("memory", "higher", 1.5, "bytes", 4),  # bytes are the same in any unit, so few are enough
        ("accuracy", "higher", 1.5, "relative error", 6),
        ("tokens", "higher", 2 / 3, "1/s", 6),
        ("tokens", "lower", 1.5, "1/s", 6),
    ],
)
def test_a_goal_other_than_time_has_a_figure_and_a_gain_in_every_unit(measured, goal, better, gain, unit, units):
    found, _ = measured({"better": better}, goal=goal)

    assert [each.gains for each in found.timing.units] == [{"optimized": pytest.approx(gain)}] * units
    assert found.timing.gains["optimized"].estimate == pytest.approx(gain)
    assert {side: figure.estimate for side, figure in found.timing.figures.items()} == pytest.approx({"baseline": 3.0, "optimized": 2.0})
    assert (found.timing.goal, found.timing.unit) == (goal, unit)


def test_a_memory_row_loads_prepares_and_weighs_one_side_after_the_other(measured):
    found, session = measured(goal="memory")

    alone = ["load", "loaded", "weigh"]
    assert session.events[: 5 + 2 * len(alone)] == ["open", "open", "opened", "opened", "choose", "choose", *alone, *alone][:11]
    assert found.peak_memory_bytes == {"baseline": 3, "optimized": 2}


def test_what_lies_beside_torchs_allocator_counts_and_is_told(measured):
    found, _ = measured({"outside": 1 << 20}, goal="memory")

    assert found.peak_memory_bytes == {"baseline": 3 + (1 << 20), "optimized": 2 + (1 << 20)}
    assert "optimized holds 1.00 MiB beside torch's allocator, the code of its kernels included" in found.timing.notes


class Counter:
    """Telemetry of GPUs that draw `watts` whatever runs; None: of such as do not tell."""

    def __init__(self, watts):
        self.power = watts

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def summary(self, since=0.0):
        return TelemetrySummary(samples=1)

    def watts(self, since, until):
        assert since < until
        return self.power


@pytest.mark.parametrize(("goal", "sustained"), [("energy", False), ("time", True)])
def test_joules_of_a_step_are_power_times_its_time_where_calls_are_back_to_back(measured, monkeypatch, goal, sustained):
    monkeypatch.setattr("common.python.measure.process_pairs.Telemetry", lambda gpus: Counter(500.0))
    found, _ = measured(goal=goal, sustained=sustained)
    timing = found.timing

    assert timing.mode == "sustained"
    assert {side: joules.estimate for side, joules in timing.joules.items()} == pytest.approx({"baseline": 0.04, "optimized": 0.02})
    assert timing.gains == ({} if goal == "time" else {"optimized": timing.gains["optimized"]})
    assert timing.speedups["optimized"].estimate == pytest.approx(2.0)
    if goal == "energy":
        assert (timing.unit, len(timing.units)) == ("J", 4)
        assert timing.gains["optimized"].estimate == pytest.approx(2.0)


def test_a_gpu_without_a_counter_of_energy_has_no_joules(measured, monkeypatch):
    monkeypatch.setattr("common.python.measure.process_pairs.Telemetry", lambda gpus: Counter(None))
    timing = measured(goal="energy")[0].timing

    assert (timing.joules, timing.figures, timing.gains) == ({}, {}, {})


@pytest.mark.parametrize("goal", ["time", "latency"])
def test_time_and_a_goal_that_nobody_reports_have_none(measured, goal):
    assert measured(goal=goal)[0].timing.gains == {}


def test_a_figure_of_zero_is_no_gain(measured):
    assert measured({"figures": {"baseline": 3.0, "optimized": 0.0}}, goal="accuracy")[0].timing.gains == {}


def test_what_counts_as_time_is_the_timing_and_not_the_set_up(measured, monkeypatch):
    now = iter(float(second) for second in range(10_000))
    monkeypatch.setattr(time, "monotonic", lambda: next(now))
    found, _ = measured()

    asked = 6 * (2 + 4)  # a warm-up and two blocks a side and unit, each of which looks at the clock
    assert found.timing.seconds >= asked
    assert found.timing.seconds < next(now)


def test_workers_end_while_those_of_the_next_unit_start(measured):
    _, session = measured()

    start, end, ready = ["open", "open"], ["close", "close"], ["opened", "opened", "choose", "choose", "load", "load", "loaded", "loaded"]
    between = [*end, *start, "gone", "gone", *ready]
    assert session.events == [*start, *ready, *between * 5, *end, "gone", "gone"]


@pytest.mark.parametrize(("device", "places"), [("cuda", {"x": "pinned"}), ("cpu", {})])
def test_a_timing_says_what_lies_on_the_host_of_a_gpu(measured, no_telemetry, device, places):
    nodes = {"numa_nodes": {"baseline": [1], "optimized": [0]}} if places else {}
    found, _ = measured(nodes, conditions={"places": {"x": "pinned"}, "device": device})

    assert found.timing.places == places
    assert found.timing.numa_nodes == ((0, 1) if places else ())


def test_on_a_cpu_there_is_no_stream_to_choose(measured):
    _, session = measured(conditions={"device": "cpu"})

    start, end = ["load", "load"], ["close", "close"]
    between = [*end, *start, "gone", "gone", "loaded", "loaded"]
    assert session.events == [*start, "loaded", "loaded", *between * 5, *end, "gone", "gone"]


@pytest.fixture
def no_telemetry(monkeypatch):
    monkeypatch.setattr("common.python.measure.process_pairs.Telemetry", lambda gpus: Heat(1_000_000))


def test_samples_take_turns_at_several_sets_of_buffers(measured, no_telemetry):
    found, session = measured(gpus=(H200,))

    assert session.prepared == [1, 1] + [8, 8] * 6  # how many fit is known once a step has run
    assert (found.timing.buffer_sets, found.timing.calls_per_sample) == (8, {"baseline": 1, "optimized": 1})


@pytest.mark.parametrize(
    ("baseline_ns", "optimized_ns", "calls"),
    [
        (6e7, 5e3, (1, 5)),  # a long step that is called five times in a sample is no truer, and takes five times as long
        (2e4, 5e3, (5, 5)),
        (25e3, 24e3, (1, 2)),
        (100.0, 100.0, (32, 32)),
    ],
)
def test_a_sample_of_a_short_step_is_several_calls(measured, baseline_ns, optimized_ns, calls):
    found, session = measured({"ns": {"baseline": baseline_ns, "optimized": optimized_ns}}, iterations=2)

    assert found.timing.calls_per_sample == session.calls_per_sample == dict(zip(("baseline", "optimized"), calls, strict=True))
    assert session.prepared[:6] == [1, 1, *calls, *reversed(calls)]


@pytest.mark.parametrize(
    ("session_changes", "others", "sets"),
    [
        ({"ns": {"baseline": 8e3, "optimized": 1e4}}, {}, 2),  # 4 calls a sample, of buffers of their own
        ({"figures": {"baseline": 4e9, "optimized": 5e9}}, {}, 4),  # a quarter of 150 GB
        ({"figures": {"baseline": 9e10, "optimized": 9e10}}, {}, 1),
        ({"prepare_s": 0.15}, {}, 3),
        ({"prepare_s": 0.5}, {}, 1),
        ({"call_s": 0.15}, {}, 3),
        ({}, {"conditions": {"cache": "hot"}}, 1),
        ({}, {"conditions": {"clock": "launch"}}, 1),
        ({}, {"conditions": {"places": {"x": "pinned"}}}, 1),
        ({}, {"goal": "memory"}, 1),
        ({}, {"sustained": True}, 1),
        ({}, {"warmup": 0}, 1),
        ({}, {"iterations": 3}, 3),
        ({}, {"gpus": ()}, 1),
    ],
)
def test_there_are_as_many_sets_as_fit_and_one_where_they_are_another_question(measured, no_telemetry, session_changes, others, sets):
    found, _ = measured(session_changes, **{"gpus": (H200.model_copy(update={"memory_bytes": 150 * 10**9}),), **others})

    assert found.timing.buffer_sets == sets


def test_what_the_host_queues_on_a_held_stream_is_granted_up_to_a_limit(measured, monkeypatch):
    asleep = {"step_s": {"optimized": 0.02}, "ns": {"baseline": 3e5, "optimized": 3e5}}
    assert measured({**asleep, "queued_ns": {"optimized": 2e7}}, iterations=20)[0].timing.speedups  # 2 ms in each of 10 calls
    with pytest.raises(SideFailure, match=r"optimized: its process takes at least [\d.]+ (ms|µs)") as failure:
        measured(
            {**asleep, "step_s": {"optimized": 0.04}, "queued_ns": {"optimized": 4e7}}, iterations=20
        )  # 4 ms, of which 2.5 are granted
    assert failure.value.status is Status.IMPLAUSIBLE
    with pytest.raises(SideFailure, match=r"optimized: its process takes at least [\d.]+ (ms|µs)"):
        measured(asleep, iterations=20)


def test_what_a_side_hides_shows_though_it_takes_more_samples_than_the_baseline(measured):
    counts = {"sample_ns": {"baseline": 6e6, "optimized": 1e5}, "ns": {"baseline": 6e5, "optimized": 1e5}}  # 10 and 64 samples a block
    a_block_costs = {"step_s": {"baseline": 0.004, "optimized": 0.004}}
    assert measured({**counts, **a_block_costs})[0].timing.speedups
    with pytest.raises(SideFailure, match="optimized: its process takes at least") as failure:
        measured({**counts, "step_s": {"baseline": 0.004, "optimized": 0.004 + 64 * 2e-3}})  # of which the baseline's block covers 0.4
    assert failure.value.status is Status.IMPLAUSIBLE


def test_work_that_is_left_behind_the_clock_has_escaped(measured):
    with pytest.raises(SideFailure, match=r"optimized\S*: found the GPU at work for 9\.0 us") as failure:
        measured({"behind_ns": {"optimized": 9_000.0}})
    assert failure.value.status is Status.STREAM_ESCAPE
    assert measured({"behind_ns": {"optimized": 4_000.0}})[0].timing.speedups
    assert measured({"behind_ns": {"optimized": 9_000.0}}, conditions={"clock": "launch"})[0].timing.speedups  # never held


class Heat:
    """Telemetry of a device that throttles in every `every`-th block, from the first on."""

    def __init__(self, every):
        self.every, self.asked = every, 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def summary(self, since=0.0):
        self.asked += 1
        hot = (self.asked - 1) % self.every == 0
        return TelemetrySummary(samples=1, throttled_share=1.0 if hot else 0.0)

    def watts(self, since, until):
        return None


@pytest.mark.parametrize(("every", "reason"), [(10, StopReason.PRECISE), (2, StopReason.THROTTLED)])
def test_heat_now_and_then_is_measured_again_and_heat_all_the_time_ends_it(measured, monkeypatch, every, reason):
    monkeypatch.setattr("common.python.measure.process_pairs.Telemetry", lambda gpus: Heat(every))
    monkeypatch.setattr(throttle, "SHORTEST_PAUSE_S", 0.0)
    found, session = measured()

    assert found.timing.stop_reason is reason
    assert len(found.timing.units) == 6
    assert len(session.blocks) > 6 * 4
    assert f"{len(session.blocks) - 6 * 4} blocks were taken again: the device throttled in them" in found.timing.notes


def test_a_device_that_never_cools_ends_it_at_two_units(measured, monkeypatch):
    monkeypatch.setattr("common.python.measure.process_pairs.Telemetry", lambda gpus: Heat(1))
    monkeypatch.setattr(throttle, "MOST_LOST_S", 1e-9)
    found, _ = measured()

    assert (len(found.timing.units), found.timing.stop_reason) == (2, StopReason.THROTTLED)


def starts_of(events):
    """How many workers started at once, each time, and how many had begun to end by then: "opened" once for each, behind all "open"."""
    batches = itertools.groupby(enumerate(events), key=lambda event: event[1])
    return [(len(batch), events[: batch[0][0]].count("close")) for name, found in batches if name == "opened" for batch in [list(found)]]


@pytest.fixture
def many_cores(monkeypatch, no_telemetry):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(16)))
    monkeypatch.setattr(process_pairs, "fastest_core", min)
    monkeypatch.setattr(process_pairs.psutil, "virtual_memory", lambda: SimpleNamespace(available=128 << 30))


DEAR = {"compiled": True, "prepare_s": 3.0}
ALONE = [(2, 2 * ended) for ended in range(6)]


@pytest.mark.usefixtures("many_cores")
def test_units_whose_compiled_code_is_slow_to_load_start_at_once_behind_the_first_and_are_timed_one_by_one(measured):
    found, session = measured(DEAR, gpus=(H200,))

    assert starts_of(session.events) == [(2, 0), (10, 2)]  # nobody ends among those that are timed
    assert session.events[-20:] == ["close"] * 10 + ["gone"] * 10
    assert session.called == [True] * 12
    assert found.starting_s > 0
    assert [unit.order[0] for unit in found.timing.units] == ["baseline", "optimized"] * 3
    assert sorted(session.ended) == ["baseline"] * 6 + ["optimized"] * 6


@pytest.mark.usefixtures("many_cores")
@pytest.mark.parametrize(
    ("changes", "others", "starts"),
    [
        ({"prepare_s": 1.0}, {}, ALONE),  # their start takes no longer than what they are timed for
        ({"compiled": False}, {}, ALONE),
        ({"figures": {"baseline": 3e10, "optimized": 3e10}}, {}, ALONE),  # half of 150 GB
        ({"figures": {"baseline": 1e10, "optimized": 1e10}}, {}, [(2, 0), (6, 2), (4, 8)]),
        ({}, {"conditions": {"places": {"x": "pinned"}}}, ALONE),
        ({}, {"goal": "tokens"}, ALONE),
        ({}, {"repeat": 2}, [(2, 0), (10, 2), (12, 12)]),
    ],
)
def test_as_many_units_start_at_once_as_fit_and_are_needed(measured, changes, others, starts):
    _, session = measured(DEAR | changes, gpus=(H200.model_copy(update={"memory_bytes": 150 * 10**9}),), **others)

    assert starts_of(session.events) == starts


@pytest.mark.usefixtures("many_cores")
@pytest.mark.parametrize(("cores", "starts"), [(6, [(2, 0), (6, 2), (4, 8)]), (2, ALONE)])
def test_no_more_units_start_at_once_than_there_are_cores(measured, monkeypatch, cores, starts):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)))

    assert starts_of(measured(DEAR, gpus=(H200,))[1].events) == starts


@pytest.mark.usefixtures("many_cores")
def test_units_that_wait_end_with_a_measurement_that_fails(measured, monkeypatch):
    gone = []
    monkeypatch.setattr(Worker, "__exit__", lambda *_: gone.append(1))
    with pytest.raises(SideFailure, match="optimized: its process takes"):
        measured(DEAR | {"step_s": {"optimized": 0.02}}, gpus=(H200,))
    assert len(gone) == 12


def test_a_compiled_side_is_not_called_before_its_warm_up_where_none_is_wanted(measured):
    assert set(measured({"compiled": True}, warmup=0)[1].called) == {False}
    assert set(measured({"compiled": True})[1].called) == {True}
    assert set(measured()[1].called) == {False}

"""One sample: live inputs rewritten, caches in their stated state, everything waited for, and only then the clock and the step.

Of inputs in the host's memory some words are written last of all, right before the clock starts: see `host_memory.py`.

On a GPU the stream is held while the host queues the step, so that the host's launch latency is not in the time, and the clocks
of the SMs are read around it. A step much shorter than an event pair is timed as a batch, each call on buffers of its own. Where
memory sets the pace, where buffers lie makes a difference of some 0.5 %, so samples take turns at several sets of them.
"""

from __future__ import annotations

import contextlib
import gc
import math
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter_ns
from typing import Literal

import nvtx
import torch

from common.python.child.device.driver import record_behind_all
from common.python.child.device.escape import TimedLook
from common.python.child.device.helpers import device_helpers, sm_clock_hz
from common.python.child.distributed import Alone, Together
from common.python.child.family import BetweenCalls, on_one_thread
from common.python.child.sides.compare import snapshot
from common.python.child.sides.host_memory import LateWords
from common.python.child.sides.inputs import Inputs
from common.python.pairs.workload import Workload
from common.python.processes.messages import MOST_QUEUED_NS

# Bound before any side is imported, so a side that patches the time or torch modules patches nothing here.
_synchronize = torch.cuda.synchronize
_Event = torch.cuda.Event
_push, _pop = nvtx.push_range, nvtx.pop_range
_clock_ns = perf_counter_ns
_untrace, _unprofile = sys.settrace, sys.setprofile

_FLUSH_LEAST_BYTES = 256 << 20
_FLUSH_MOST_SHARE = 0.05
_STEADY = 0.02  # two successive warm-up blocks agree to 2 %
_WARM_BLOCK = 5  # samples; of long steps two, in as long
_WARM_BLOCK_NS = 100_000_000
_HOLD_NS = 2_000_000_000
_PROBE_NS = 250_000_000
_SUSTAINED_NS = 1_000_000_000
_SUSTAINED_ROUNDS = 16  # between two looks at the clock: the device never waits long for the host
_TRIES = 3  # of a sample that came out void

Step = Callable[[], object]
Take = Callable[[object, int], dict[str, torch.Tensor]]  # the outputs in what a step returned, by the number of its copy
Look = Callable[[list[object]], None]


@dataclass(frozen=True)
class Sample:
    """One timed call: ns, the SM clock in Hz (0.0 where there is none), and whether the hold ran out, which voids it.

    `queued_ns` are the host's for the call while the stream was held; `behind_ns`, of a sample that was looked at, the GPU's from the
    clock's stop to its last work. `began_ns` is when a clock of the host's started.
    """

    ns: float
    sm_clock_hz: float = 0.0
    void: bool = False
    queued_ns: float = 0.0
    behind_ns: float = 0.0
    began_ns: int = 0


@dataclass(frozen=True)
class Kept:
    """The outputs of a call, whether any of them escaped, and for how long the GPU worked on behind its sample.

    On a stream the outputs are as a copy behind the step found them: what was not done by then does not count, and is "late".
    """

    outputs: dict[str, torch.Tensor]
    escaped: Literal["", "early", "late"] = ""
    behind_ns: float = 0.0


L2State = Literal["clean", "dirty", "hot"]


class DeviceTimer:
    """Times calls on the current CUDA stream, with the L2 in a stated state.

    clean    flushed, and the flushed lines discarded: the state in which sides are timed
    dirty    flushed, and full of lines that are yet to be written back
    hot      as the call before left it
    """

    together: Together = Alone()

    def __init__(self, device: torch.device, l2: L2State) -> None:
        properties = torch.cuda.get_device_properties(device)
        free, _ = torch.cuda.mem_get_info(device)
        wanted = max(2 * properties.L2_cache_size, _FLUSH_LEAST_BYTES)
        self._helpers = device_helpers()
        self._clean = l2 == "clean"
        self._flush_bytes = 0 if l2 == "hot" else min(wanted, int(_FLUSH_MOST_SHARE * free)) & ~127
        self._all_done = _Event(enable_timing=True)
        self._all_done.record()
        record_behind_all(self._all_done)  # what a first call sets up is no work of a step
        self._stamps = [torch.zeros(properties.multi_processor_count, 2, dtype=torch.int64, device=device) for _ in range(2)]

    def chill(self) -> None:
        """Put the L2 in its state and wait until it is."""
        self._helpers.give_back_l2()
        if self._flush_bytes:
            self._helpers.flush(self._flush_bytes, clean=self._clean)
        _synchronize()

    def write(self, late: LateWords) -> None:
        """Write words that were held back: pinned memory by a kernel on the stream, behind what holds it, pageable memory at once."""
        if late.is_pinned:
            self._helpers.write_words(late.words, late.positions, late.values)
        else:
            late.write()

    def time(
        self, calls: Sequence[Step], hold_ns: int, look: Look | None = None, late: Sequence[LateWords] = ()
    ) -> tuple[Sample, list[object]]:
        """The mean time of `calls`, and what they returned. The stream is held for at most `hold_ns` while they are queued; 0: not.

        `look` gets what they returned when they are queued, and after them nothing has run yet on a stream that is held. Words of inputs
        that come `late` are the last thing before the clock starts. Streams of several ranks go on when all have queued their calls, or, if
        they are not held, from where all ranks are.
        """
        start, stop = _Event(enable_timing=True), _Event(enable_timing=True)
        # Bound before the step runs: what a name of this module stands for afterwards is no matter.
        record_stop, stamp, synchronize = stop.record, self._helpers.stamp, _synchronize
        clock_ns, untrace, unprofile, record_all = _clock_ns, _untrace, _unprofile, record_behind_all
        meet, gate = self.together.meet, self.together.gate
        release = gate.open if gate else self._helpers.release
        for stamps in self._stamps:
            stamps.zero_()
        _synchronize()
        try:
            if hold_ns:
                self._helpers.block(hold_ns, gate)
            for words in late:
                self.write(words)
            if not hold_ns:
                meet()
            stamp(self._stamps[0])
            start.record()
            begin = clock_ns()
            returned = [call() for call in calls]
            untrace(None)  # or a function that the step left behind would be called before the event is recorded
            unprofile(None)
            queued_ns = clock_ns() - begin
            record_stop()
            knows_all = look is not None and record_all(self._all_done)  # which others wait for, so it is not put behind every sample
            stamp(self._stamps[1])
            if look:
                look(returned)
            if hold_ns:
                meet()
        finally:
            release()
            synchronize()
        ns = float(start.elapsed_time(stop)) * 1e6 / len(calls)
        clock = sm_clock_hz(*(stamps.cpu() for stamps in self._stamps))
        void = hold_ns > 0 and self._helpers.expired
        behind_ns = float(stop.elapsed_time(self._all_done)) * 1e6 if knows_all else 0.0
        return Sample(ns, clock, void=void, queued_ns=queued_ns / len(calls) if hold_ns else 0.0, behind_ns=behind_ns), returned


class Sampler:
    """Times a step under the workload's clock. `copies` are prepared alike, each on buffers of its own.

    A sample calls `each` of them once, by default all, and the next sample the next ones.
    """

    def __init__(
        self,
        workload: Workload,
        copies: Sequence[tuple[Inputs, Step]],
        device: torch.device,
        label: str,
        take: Take,
        each: int | None = None,
    ) -> None:
        self._workload = workload
        self._take = take
        self._every = tuple(copies)
        self._first = 0
        self._copies = self._every[:each]
        self._cuda = device.type == "cuda"
        self._label = label
        self.clock = workload.clock if self._cuda else "host"
        self.hold = self.clock == "device"
        self._limit_ns = _HOLD_NS
        self.warm_files = False
        self.returned: list[object] = []
        self.found: list[dict[str, torch.Tensor]] = []  # the evolving state of each copy before its latest call
        self.between: BetweenCalls | None = None  # of a side that may have threads and processes
        self._timed_look: TimedLook | None = None
        self._latest = Sample(0.0)
        self._together: Together = Alone()
        if self._cuda:
            self.hold &= not any(inputs.has_pageable for inputs, _ in copies)  # a copy of it can wait for what its stream waits for
            self._timer = DeviceTimer(device, "hot" if workload.cache == "hot" else "clean")

    def join(self, together: Together) -> None:
        """Synchronize this sampler with the other ranks: all begin each sample together, and rank 0 chooses the number of calls."""
        self._together = together
        if self._cuda:
            self._timer.together = together

    @property
    def calls_per_sample(self) -> int:
        """How many calls, each with a seed of its own, one sample makes."""
        return len(self._copies)

    @property
    def first(self) -> int:
        """The place among all copies of the first that the latest sample called."""
        return self._first

    def _next_copies(self) -> None:
        each = len(self._copies)
        self._first = (self._first + each) % len(self._every)
        self._copies = self._every[self._first : self._first + each]

    def sample(self, seed: int, looked_at: int | None = None) -> Sample:
        """The time of one call, on the inputs of `seed`, a copy's on those of a seed behind it; what was returned is in `returned`.

        The call at the place `looked_at` among them is looked at, and `kept` will tell of it.
        """
        look = self._prepare_look(looked_at)
        self._next_copies()
        self._together.meet()  # what is rewritten now, another may have read in the call before
        with on_one_thread() if self.between else contextlib.nullcontext():
            for position, (inputs, _) in enumerate(self._copies):
                inputs.rewrite(seed + position, late=True)
        self._look()
        self._chill()
        _push(self._label)
        try:
            return self._device_sample(look) if self.clock == "device" else self._host_sample()
        finally:
            _pop()

    def _prepare_look(self, place: int | None) -> Look | None:
        """What looks at a call of the sample to come, where that is timed by events: else the time has all that the device does."""
        room = self._timed_look
        if place is None or room is None:
            return None
        room.remember(self._take(self.returned[place], self._first + place) if self.returned else {})
        return lambda returned: room.take(self._take(returned[place], self._first + place), held=self.hold)

    def kept(self, place: int) -> Kept:
        """What is known of a call that was looked at."""
        now = self._take(self.returned[place], self._first + place)
        if (look := self._timed_look) is None:
            return Kept(snapshot(now))
        early = not self._latest.void and look.escaped()
        escaped: Literal["", "early", "late"] = "late" if look.changed(now) else "early" if early else ""
        return Kept(snapshot(look.behind), escaped, self._latest.behind_ns)

    def _look(self) -> None:
        # Before every call, so that no step can tell by the allocator which one is going to be judged.
        self.found = [snapshot(inputs.state()) for inputs, _ in self._copies]

    def _late_words(self) -> list[LateWords]:
        return [words for inputs, _ in self._copies for words in inputs.late_words]

    def _chill(self) -> None:
        if self._workload.cache == "cold":
            for inputs, _ in self._copies:
                for file in inputs.files:
                    self.warm_files |= not file.leave_cache()
        if self._cuda:
            self._timer.chill()

    def _device_sample(self, look: Look | None) -> Sample:
        steps, hold_ns = [step for _, step in self._copies], self._limit_ns if self.hold else 0
        sample, self.returned = self._timer.time(steps, hold_ns, look, self._late_words())
        self._latest = sample
        return sample

    def _host_sample(self) -> Sample:
        steps, cuda = [step for _, step in self._copies], self._cuda
        # Bound before the step runs: what a name of this module stands for afterwards is no matter.
        clock_ns, synchronize, untrace, unprofile = _clock_ns, _synchronize, _untrace, _unprofile
        if late := self._late_words():
            for words in late:
                self._timer.write(words)
            synchronize()
        self._together.meet()
        between = self.between
        if between:
            between.call_begins()
        begin = clock_ns()
        returned = [step() for step in steps]
        if cuda:
            synchronize()
        untrace(None)  # or a function that the step left behind would work while the clock is read
        unprofile(None)
        elapsed = clock_ns() - begin
        if between:
            between.call_ended(elapsed)
        self.returned = returned
        return Sample(float(elapsed) / len(steps), began_ns=begin)

    def sustained_sample(self, seed: int) -> Sample:
        """The mean time of a call in a second of calls back to back: inputs and caches as the call before left them."""
        for position, (inputs, _) in enumerate(self._copies):
            inputs.rewrite(seed + position)
        self._together.meet()
        rounds, begin = 0, _clock_ns()
        while self._together.first((elapsed := _clock_ns() - begin) < _SUSTAINED_NS):
            for _ in range(_SUSTAINED_ROUNDS):
                self.returned = [step() for _, step in self._copies]
            rounds += _SUSTAINED_ROUNDS
            if self._cuda:
                _synchronize()  # or the host would run ahead of the device by the whole second
        if self._workload.evolves:  # the state behind so many calls can be judged only as where the next one begins
            self._look()
            self.returned = [step() for _, step in self._copies]
        return Sample(elapsed / (rounds * len(self._copies)))

    def settle(self) -> None:
        """Find out whether the stream can be held over a step: one that waits for the device, or queues too much, cannot be.

        Nor is one on which the host works for longer than on many launches: that is more than latency, and the time says so.
        """
        self._limit_ns = _PROBE_NS
        self.hold = not self._together.any(not self.hold) and self._can_be_held()
        self._limit_ns = _HOLD_NS

    def _can_be_held(self) -> bool:
        queued_ns = math.inf
        each = len(self._every) // len(self._copies)  # samples until every copy has been called once
        for i in range(max(_TRIES, each)):
            if i >= each and not self._together.any(queued_ns > MOST_QUEUED_NS):
                return True
            sample = self.sample(0)
            if self._together.any(sample.void):
                return False
            queued_ns = min(queued_ns, sample.queued_ns)
        return not self._together.any(queued_ns > MOST_QUEUED_NS)

    def warm(self, seed: int, calls: int, seconds: float) -> tuple[int, float, float]:
        """Sample until two successive blocks agree, at most `seconds`; exactly `calls` times if that is not negative.

        Returns the number of samples, the median call and the median whole sample, in ns.
        """
        done, steps, wholes = 0, [0.0], [0.0]
        previous = 0.0
        deadline = _clock_ns() + int(seconds * 1e9)
        while done < calls if calls >= 0 else True:
            steps, wholes = [], []
            for i in range(min(_WARM_BLOCK, calls - done) if calls >= 0 else _WARM_BLOCK):
                if i >= 2 and self._together.first(sum(wholes) > _WARM_BLOCK_NS):
                    break
                begin = _clock_ns()
                steps.append(self.sample(seed + done * len(self._copies)).ns)
                wholes.append(float(_clock_ns() - begin))
                done += 1
                if calls < 0 and self._together.first(_clock_ns() > deadline):
                    break
            median = statistics.median(steps)
            steady = previous > 0 and abs(median / previous - 1) <= _STEADY
            if calls < 0 and self._together.first(steady or _clock_ns() > deadline):
                break
            previous = median
        return done, statistics.median(steps), statistics.median(wholes)

    def block(
        self, seed: int, count: int, looks: Mapping[int, int], after: Callable[[int], None], *, sustained: bool
    ) -> tuple[list[Sample], int]:
        """Take `count` samples, and return them with the number of samples that were void and repeated.

        The calls of sample i have the seeds from seed + i * calls_per_sample on.
        `looks` names, for some samples, the call whose answers are checked. `after(i)` runs after sample i, outside the timed span.
        """
        samples: tuple[Sample, ...] = ()  # which no step can edit, as it could a list that it finds on the stack
        void = 0
        if self.clock == "device" and not sustained:
            inputs = self._copies[0][0]
            answers = inputs.answers()
            self._timed_look = self._timed_look or TimedLook(answers, [name for name in answers if self._workload.may_change(name)])
        gc.collect()
        gc.disable()
        if self.between:
            self.between.block_begins()
        try:
            for i in range(count):
                for _ in range(_TRIES):
                    first = seed + i * len(self._copies)
                    sample = self.sustained_sample(first) if sustained else self.sample(first, looks.get(i))
                    # Where streams are not held none is void, and nobody waits to hear so.
                    if not (self._together.any(sample.void) if self.hold else sample.void):
                        break
                    void += 1
                samples = (*samples, sample)
                after(i)
        finally:
            gc.enable()
        return list(samples), void

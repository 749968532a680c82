"""One sample: live inputs rewritten, caches in their stated state, everything waited for, and only then the clock and the step."""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable
from time import perf_counter_ns

import nvtx
import torch

from common.python.random_inputs import Inputs
from common.python.workload import Workload

# Bound before any side is imported, so a side that patches the time or torch modules patches nothing here.
_synchronize = torch.cuda.synchronize
_zero = torch.Tensor.zero_
_Event = torch.cuda.Event
_push, _pop = nvtx.push_range, nvtx.pop_range

_FLUSH_LEAST_BYTES = 256 << 20
_FLUSH_MOST_SHARE = 0.05
_STEADY = 0.02  # two successive warm-up blocks agree to 2 %
_WARM_BLOCK = 5

Step = Callable[[], object]


class Sampler:
    """Times single calls of a step under the workload's clock; every time is in ns."""

    def __init__(self, workload: Workload, inputs: Inputs, step: Step, device: torch.device, label: str) -> None:
        self._workload = workload
        self._inputs = inputs
        self._step = step
        self._cuda = device.type == "cuda"
        self._label = label
        self.clock = workload.clock if self._cuda else "host"
        self._flush_buffer = self._make_flush_buffer(device)
        self.warm_files = False
        self.returned: object = None

    def _make_flush_buffer(self, device: torch.device) -> torch.Tensor | None:
        if not self._cuda or self._workload.cache == "hot":
            return None
        free, _ = torch.cuda.mem_get_info()
        l2 = torch.cuda.get_device_properties(device).L2_cache_size
        size = min(max(2 * l2, _FLUSH_LEAST_BYTES), int(_FLUSH_MOST_SHARE * free))
        return torch.empty(size, dtype=torch.uint8, device=device)

    def sample(self, seed: int) -> float:
        """Nanoseconds of one call on the inputs of `seed`; what it returned is in `returned`."""
        self._inputs.rewrite(seed)
        self._chill()
        _push(self._label)
        try:
            return self._device_sample() if self.clock == "device" else self._host_sample()
        finally:
            _pop()

    def _chill(self) -> None:
        if self._workload.cache == "cold":
            for file in self._inputs.files:
                self.warm_files |= not file.leave_cache()
        if self._flush_buffer is not None:
            _zero(self._flush_buffer)
        if self._cuda:
            _synchronize()

    def _device_sample(self) -> float:
        start, stop = _Event(enable_timing=True), _Event(enable_timing=True)
        start.record()
        self.returned = self._step()
        stop.record()
        _synchronize()
        return float(start.elapsed_time(stop)) * 1e6

    def _host_sample(self) -> float:
        begin = perf_counter_ns()
        self.returned = self._step()
        if self._cuda:
            _synchronize()
        return float(perf_counter_ns() - begin)

    def warm(self, seed: int, calls: int, seconds: float) -> tuple[int, float, float]:
        """Call until two successive blocks of samples agree, at most `seconds`; exactly `calls` times if that is not negative.

        Returns the number of calls, the median step and the median whole sample.
        """
        done, steps, wholes = 0, [0.0], [0.0]
        previous = 0.0
        deadline = perf_counter_ns() + int(seconds * 1e9)
        while done < calls if calls >= 0 else True:
            steps, wholes = [], []
            for _ in range(min(_WARM_BLOCK, calls - done) if calls >= 0 else _WARM_BLOCK):
                begin = perf_counter_ns()
                steps.append(self.sample(seed + done))
                wholes.append(float(perf_counter_ns() - begin))
                done += 1
                if calls < 0 and perf_counter_ns() > deadline:
                    break
            median = statistics.median(steps)
            steady = previous > 0 and abs(median / previous - 1) <= _STEADY
            if calls < 0 and (steady or perf_counter_ns() > deadline):
                break
            previous = median
        return done, statistics.median(steps), statistics.median(wholes)

    def block(self, seed: int, count: int, after: Callable[[int], None]) -> list[float]:
        """`count` samples, the i-th on the inputs of seed + i; `after(i)` runs behind each, outside the timed span."""
        samples = []
        gc.collect()
        gc.disable()
        try:
            for i in range(count):
                samples.append(self.sample(seed + i))
                after(i)
        finally:
            gc.enable()
        return samples

"""What an engine tells Prometheus: histograms by label, gauges of the GPU by NVML, and the page that a scrape reads."""

from __future__ import annotations

import bisect
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol

import psutil
import pynvml
import torch

BOUNDS_S = tuple(round(base * 10.0**power, 9) for power in range(-4, 2) for base in (1.0, 1.5, 2.0, 3.0, 5.0, 7.0))
QUANTILES = (0.5, 0.95, 0.99)


class Served(Protocol):
    """A request, as far as its latency goes."""

    @property
    def id(self) -> int:
        """Unlike that of any other that runs."""


class Histogram:
    """Counts of values by upper bound, of durations in seconds; to observe one costs a search among 36 bounds.

    `labels` are as Prometheus writes them between braces.
    """

    def __init__(self, name: str, help_text: str, labels: str = "") -> None:
        self.name, self._help, self._labels = name, help_text, labels
        self._counts, self._total = [0] * (len(BOUNDS_S) + 1), 0.0  # the last count is of what lies beyond all bounds

    def observe(self, value: float) -> None:
        """Count one value."""
        self._counts[bisect.bisect_left(BOUNDS_S, value)] += 1
        self._total += value

    def quantile(self, share: float) -> float:
        """Seconds, as PromQL's histogram_quantile: linear within the bucket in which `share` of the durations end; NaN for none."""
        wanted, below = share * sum(self._counts), 0
        for position, count in enumerate(self._counts):
            if count and below + count >= wanted:
                if position == len(BOUNDS_S):
                    return BOUNDS_S[-1]
                low = BOUNDS_S[position - 1] if position else 0.0
                return low + (BOUNDS_S[position] - low) * (wanted - below) / count
            below += count
        return float("nan")

    def lines(self) -> Iterator[str]:
        """Prometheus' text format, version 0.0.4."""
        yield f"# HELP {self.name} {self._help}"
        yield f"# TYPE {self.name} histogram"
        yield from self.samples()

    def samples(self) -> Iterator[str]:
        """The same without the header, which histograms of one name share."""
        below, labels = 0, f"{{{self._labels}}}" if self._labels else ""
        for bound, count in zip((*BOUNDS_S, "+Inf"), self._counts, strict=True):
            below += count
            yield f'{self.name}_bucket{{{self._labels}{"," if self._labels else ""}le="{bound}"}} {below}'
        yield f"{self.name}_sum{labels} {self._total}"
        yield f"{self.name}_count{labels} {below}"


class Labelled:
    """Histograms of one name, one for each value of `label`."""

    def __init__(self, name: str, help_text: str, label: str) -> None:
        self.name, self._help, self._label = name, help_text, label
        self._histograms: dict[str, Histogram] = {}

    def of(self, value: str) -> Histogram:
        """The histogram of what has `value` as its label."""
        if value not in self._histograms:
            self._histograms[value] = Histogram(self.name, self._help, f'{self._label}="{value}"')
        return self._histograms[value]

    def lines(self) -> Iterator[str]:
        """Prometheus' text format: one header, then each histogram."""
        yield f"# HELP {self.name} {self._help}"
        yield f"# TYPE {self.name} histogram"
        for histogram in self._histograms.values():
            yield from histogram.samples()


def now() -> float:
    """Seconds, of the clock of `Latencies`."""
    return time.perf_counter()


class Latencies:
    """Time to first token, and from token to token, as the serving loop queues their steps: it does not wait for the GPU."""

    def __init__(self) -> None:
        self.first = Histogram("llm_time_to_first_token_seconds", "From arrival until the step of the first token was queued.")
        self.gap = Histogram("llm_inter_token_latency_seconds", "From the queued step of a request's token to that of its next.")
        self._last: dict[int, tuple[float, Histogram]] = {}

    def arrived(self, requests: Sequence[Served]) -> None:
        """`requests` came just now."""
        at = now()
        for request in requests:
            self._last[request.id] = (at, self.first)

    def stepped(self, requests: Sequence[Served], done: Collection[int], at: float) -> None:
        """Each of `requests` had one more token `at` a time of `now`; those whose ids are in `done` are complete."""
        for request in requests:
            before, histogram = self._last[request.id]
            histogram.observe(at - before)
            self._last[request.id] = (at, self.gap)
        for request_id in done:
            del self._last[request_id]

    def page(self, gauges: Mapping[str, float], *others: Labelled) -> str:
        """What a scrape reads: both histograms, their quantiles, `gauges` by name, and `others`."""
        lines, values = [*self.first.lines(), *self.gap.lines()], dict(gauges)
        for other in others:
            lines += other.lines()
        for histogram in (self.first, self.gap):
            values |= {f"{histogram.name}_p{share * 100:g}": histogram.quantile(share) for share in QUANTILES}
        for name, value in values.items():
            lines += [f"# TYPE {name} gauge", f"{name} {value}"]
        return "\n".join([*lines, ""])


def gauges_of(nvml: Any, handle: Any) -> dict[str, float]:
    """A GPU's gauges by name; a query that the driver refuses is left out. `nvml` is the module pynvml or its like."""
    queries: dict[str, Callable[[], float]] = {
        "gpu_power_watts": lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1e3,
        "gpu_utilization_percent": lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu,
        "gpu_memory_used_bytes": lambda: nvml.nvmlDeviceGetMemoryInfo(handle).used,
        "gpu_temperature_celsius": lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU),
        "gpu_sm_clock_hertz": lambda: nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM) * 1e6,
    }
    found = {}
    for name, query in queries.items():
        try:
            found[name] = query()
        except nvml.NVMLError:
            continue
    return found


class Sensor:
    """Reads the gauges of `device`: a GPU's by NVML; for a CPU those of the machine, by psutil."""

    def __init__(self, device: torch.device | str) -> None:
        self._handle: Any = None
        if torch.device(device).type == "cuda":
            pynvml.nvmlInit()
            self._handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{torch.cuda.get_device_properties(device).uuid}")

    def read(self) -> dict[str, float]:
        """Gauges by name, as they are now."""
        if self._handle is not None:
            return gauges_of(pynvml, self._handle)
        return {"host_cpu_percent": psutil.cpu_percent(), "host_memory_used_bytes": float(psutil.virtual_memory().used)}

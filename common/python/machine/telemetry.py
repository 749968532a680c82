"""What the GPUs did while a window was timed: NVML sampled on a thread, so that a slow clock has a name."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from types import TracebackType
from typing import Any, Self

import pynvml

from common.python.machine.description import Gpu, answer, nvml_session
from common.python.results import Energy, Spread, TelemetrySummary

REASONS = {
    0x1: "idle",
    0x2: "clocks_setting",
    0x4: "power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake",
    0x100: "display_clocks",
}
"""NVML's clock event reasons."""

THROTTLING = 0x8 | 0x20 | 0x40 | 0x80
"""Those that void a sample: heat and hardware slowdowns. A power cap is physics, and is only reported."""

SHORTEST_ENERGY_S = 1.0
"""The energy counter advances in steps of many ms: over less than this its rounding shows."""


@dataclass(frozen=True, slots=True)
class _Reading:
    """What one GPU answered at `at` (seconds, monotonic), by quantity."""

    at: float
    gpu: str
    values: dict[str, float]


class Telemetry:
    """Samples `gpus` every `period_s` seconds for as long as it is entered; with no GPU it does nothing and its summary is empty.

    `nvml` is the pynvml module or its like.
    """

    def __init__(self, gpus: Sequence[Gpu], nvml: Any = pynvml, period_s: float = 0.02) -> None:
        self._gpus = tuple(gpus)
        self._nvml = nvml
        self._period_s = period_s
        self._readings: list[_Reading] = []
        self._handles: dict[str, Any] = {}
        self._reading = threading.Lock()  # the thread and a caller of `summary` take turns, so readings stay in order
        self._ended = threading.Event()
        self._open = ExitStack()

    def __enter__(self) -> Self:
        if self._gpus and not self._open.enter_context(nvml_session(self._nvml)):
            handles = {gpu.uuid: answer(self._nvml, self._nvml.nvmlDeviceGetHandleByUUID, gpu.uuid) for gpu in self._gpus}
            self._handles = {uuid: handle for uuid, handle in handles.items() if handle is not None}
        if self._handles:
            self._read()
            thread = threading.Thread(target=self._sample, name="telemetry", daemon=True)
            thread.start()
            self._open.callback(thread.join)
            self._open.callback(self._ended.set)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._read()
        self._open.close()
        self._handles = {}

    def summary(self, since: float = 0.0) -> TelemetrySummary:
        """All readings taken at `since` (of `time.monotonic`, seconds) or later; while entered, one taken now is among them."""
        self._read()
        readings = [reading for reading in list(self._readings) if reading.at >= since]
        told = [int(reading.values["reasons"]) for reading in readings if "reasons" in reading.values]
        shares = {name: _share(told, bit) for bit, name in REASONS.items()}
        return TelemetrySummary(
            samples=len(readings),
            sm_clock_mhz=_spread(readings, "sm_clock_mhz"),
            memory_clock_mhz=_spread(readings, "memory_clock_mhz"),
            power_w=_spread(readings, "power_w"),
            temperature_c=_spread(readings, "temperature_c"),
            reasons={name: share for name, share in shares.items() if share > 0},
            throttled_share=_share(told, THROTTLING),
            energy=_energy(readings, len(self._gpus)),
        )

    def watts(self, since: float, until: float) -> float | None:
        """The mean power of all GPUs together from `since` to `until` (of `time.monotonic`, seconds), by their energy counters.

        A counter advances in steps of many ms, so it is read from its first advance in the window to its last; None where a GPU has no
        counter, or these two lie less than half of SHORTEST_ENERGY_S apart.
        """
        self._read()
        inside = [reading for reading in list(self._readings) if since <= reading.at <= until and "energy_j" in reading.values]
        powers = [_mean_power([reading for reading in inside if reading.gpu == gpu.uuid]) for gpu in self._gpus]
        known = [power for power in powers if power is not None]
        return sum(known) if known and len(known) == len(powers) else None

    def _sample(self) -> None:
        while not self._ended.wait(self._period_s):
            self._read()

    def _read(self) -> None:
        with self._reading:
            for uuid, handle in self._handles.items():
                self._readings.append(_Reading(time.monotonic(), uuid, _ask(self._nvml, handle)))


def _ask(nvml: Any, handle: Any) -> dict[str, float]:
    """The quantities that this GPU reports now; one it does not report is left out."""
    answers = {
        "sm_clock_mhz": (answer(nvml, nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM), 1),
        "memory_clock_mhz": (answer(nvml, nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_MEM), 1),
        "power_w": (answer(nvml, nvml.nvmlDeviceGetPowerUsage, handle), 1e-3),
        "temperature_c": (answer(nvml, nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU), 1),
        "reasons": (answer(nvml, nvml.nvmlDeviceGetCurrentClocksEventReasons, handle), 1),
        "energy_j": (answer(nvml, nvml.nvmlDeviceGetTotalEnergyConsumption, handle), 1e-3),
    }
    return {name: value * unit for name, (value, unit) in answers.items() if value is not None}


def _spread(readings: Sequence[_Reading], name: str) -> Spread | None:
    values = [reading.values[name] for reading in readings if name in reading.values]
    if not values:
        return None
    return Spread(minimum=min(values), median=statistics.median(values), mean=statistics.fmean(values), maximum=max(values))


def _share(told: Sequence[int], mask: int) -> float:
    return sum(bool(reasons & mask) for reasons in told) / len(told) if told else 0.0


def _mean_power(readings: Sequence[_Reading]) -> float | None:
    """Watts of one GPU between the first and the last advance of its counter."""
    advances = [after for before, after in pairwise(readings) if after.values["energy_j"] > before.values["energy_j"]]
    if len(advances) < 2 or advances[-1].at - advances[0].at < SHORTEST_ENERGY_S / 2:
        return None
    first, last = advances[0], advances[-1]
    return (last.values["energy_j"] - first.values["energy_j"]) / (last.at - first.at)


def _energy(readings: Sequence[_Reading], gpus: int) -> Energy | None:
    """Last counter less first, summed over the GPUs, if each of them has both, far enough apart."""
    counters: dict[str, list[_Reading]] = {}
    for reading in readings:
        if "energy_j" in reading.values:
            counters.setdefault(reading.gpu, []).append(reading)
    seconds = min((of_one[-1].at - of_one[0].at for of_one in counters.values()), default=0.0)
    if len(counters) < gpus or seconds < SHORTEST_ENERGY_S:
        return None
    return Energy(joules=sum(of_one[-1].values["energy_j"] - of_one[0].values["energy_j"] for of_one in counters.values()), seconds=seconds)

"""What a timed window's summary says of the GPUs, and what it refuses to say."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from typing import Any

import pynvml
import pytest

from common.python.machine.description import Gpu
from common.python.machine.telemetry import Telemetry
from common.python.results import Spread, TelemetrySummary
from tests.support.fake_nvml import FakeGpu, FakeNvml

PERIOD_S = 0.002


def gpu(uuid: str = FakeGpu.uuid) -> Gpu:
    return Gpu(index=0, name="Test", uuid=uuid, capability=(9, 0), memory_bytes=1, driver="580")


def answering(values: Iterator[Any]) -> Any:
    return lambda *_: next(values)


def watched(answers: dict[str, Any], seconds: float = 0.02) -> TelemetrySummary:
    with Telemetry([gpu()], FakeNvml(FakeGpu(answers=answers)), PERIOD_S) as telemetry:
        time.sleep(seconds)
    return telemetry.summary()


def test_without_a_gpu_nothing_is_asked_and_the_summary_is_empty() -> None:
    nvml = FakeNvml(FakeGpu())
    before = threading.active_count()
    with Telemetry([], nvml) as telemetry:
        assert threading.active_count() == before
    assert telemetry.summary() == TelemetrySummary()
    assert not telemetry.summary().throttled
    assert (nvml.calls, nvml.sessions) == (0, 0)


@pytest.mark.parametrize("nvml", [FakeNvml(), FakeNvml(FakeGpu("GPU-another"))], ids=["no driver", "GPU gone"])
def test_a_gpu_that_cannot_be_reached_gives_an_empty_summary(nvml: FakeNvml) -> None:
    with Telemetry([gpu()], nvml) as telemetry:
        pass
    assert telemetry.summary() == TelemetrySummary()
    assert nvml.sessions == 0


def test_a_thread_samples_and_the_spread_is_of_all_samples() -> None:
    clocks = {
        pynvml.NVML_CLOCK_SM: itertools.chain([1980, 1200, 1500], itertools.repeat(1500)),
        pynvml.NVML_CLOCK_MEM: itertools.repeat(3201),
    }
    nvml = FakeNvml(FakeGpu(answers={"ClockInfo": lambda domain: next(clocks[domain]), "PowerUsage": 350_000, "Temperature": 61}))
    with Telemetry([gpu()], nvml, PERIOD_S) as telemetry:
        while telemetry.summary().samples < 8:
            time.sleep(PERIOD_S)
    summary = telemetry.summary()
    assert "telemetry" in nvml.threads
    assert summary.sm_clock_mhz is not None
    assert (summary.sm_clock_mhz.minimum, summary.sm_clock_mhz.median, summary.sm_clock_mhz.maximum) == (1200, 1500, 1980)
    assert summary.memory_clock_mhz == Spread(minimum=3201, median=3201, mean=3201, maximum=3201)
    assert summary.power_w == Spread(minimum=350, median=350, mean=350, maximum=350)
    assert summary.temperature_c == Spread(minimum=61, median=61, mean=61, maximum=61)


def test_sampling_ends_with_the_block_and_its_readings_stay() -> None:
    nvml = FakeNvml(FakeGpu(answers={"Temperature": 40}))
    with Telemetry([gpu()], nvml, PERIOD_S) as telemetry:
        assert nvml.sessions == 1
    calls, samples = nvml.calls, telemetry.summary().samples
    time.sleep(5 * PERIOD_S)
    assert (nvml.calls, telemetry.summary().samples, nvml.sessions) == (calls, samples, 0)
    assert samples >= 2


def test_what_a_gpu_does_not_report_is_absent_not_zero() -> None:
    summary = watched({"Temperature": 40})
    assert summary.samples > 0
    assert (summary.sm_clock_mhz, summary.memory_clock_mhz, summary.power_w, summary.energy) == (None, None, None, None)
    assert (summary.reasons, summary.throttled) == ({}, False)


@pytest.mark.parametrize(
    ("bits", "names", "throttled"),
    [
        (0x0, set(), False),
        (0x1, {"idle"}, False),
        (0x4, {"power_cap"}, False),
        (0x8, {"hw_slowdown"}, True),
        (0x20, {"sw_thermal_slowdown"}, True),
        (0x40 | 0x4, {"hw_thermal_slowdown", "power_cap"}, True),
        (0x80, {"hw_power_brake"}, True),
        (0x2 | 0x10 | 0x100, {"clocks_setting", "sync_boost", "display_clocks"}, False),
    ],
)
def test_heat_and_hardware_slowdowns_throttle_and_a_power_cap_does_not(bits: int, names: set[str], throttled: bool) -> None:
    summary = watched({"CurrentClocksEventReasons": bits}, seconds=0)
    assert summary.reasons == dict.fromkeys(names, 1.0)
    assert summary.throttled is throttled
    assert summary.throttled_share == float(throttled)


def test_one_hot_gpu_of_two_is_half_of_the_readings() -> None:
    hot = FakeGpu("GPU-hot", {"CurrentClocksEventReasons": 0x40})
    cool = FakeGpu("GPU-cool", {"CurrentClocksEventReasons": 0x0})
    with Telemetry([gpu("GPU-hot"), gpu("GPU-cool")], FakeNvml(hot, cool), PERIOD_S) as telemetry:
        pass
    assert telemetry.summary().reasons == {"hw_thermal_slowdown": 0.5}
    assert telemetry.summary().throttled_share == 0.5


def test_a_window_counts_only_its_own_readings_and_has_one_however_short() -> None:
    answers: dict[str, Any] = {"CurrentClocksEventReasons": 0x40}
    with Telemetry([gpu()], FakeNvml(FakeGpu(answers=answers)), period_s=60.0) as telemetry:
        answers["CurrentClocksEventReasons"] = 0x0
        since = time.monotonic()
        window = telemetry.summary(since)
        assert (window.samples, window.throttled) == (1, False)
        assert telemetry.summary().throttled
    assert telemetry.summary(time.monotonic()) == TelemetrySummary()


def test_energy_is_the_counters_advance_over_a_second_or_more() -> None:
    counter_mj = itertools.count(10_000_000, 500)
    with Telemetry([gpu()], FakeNvml(FakeGpu(answers={"TotalEnergyConsumption": answering(counter_mj)})), period_s=0.25) as telemetry:
        time.sleep(0.1)
        assert telemetry.summary().energy is None
        time.sleep(1.0)
    summary = telemetry.summary()
    assert summary.energy is not None
    assert 1.0 <= summary.energy.seconds < 5.0
    assert summary.energy.joules == pytest.approx(0.5 * (summary.samples - 1))


def test_energy_of_two_gpus_needs_both_counters() -> None:
    def of_two(second: dict[str, Any]) -> Telemetry:
        first = FakeGpu("GPU-a", {"TotalEnergyConsumption": answering(itertools.count(0, 1000))})
        return Telemetry([gpu("GPU-a"), gpu("GPU-b")], FakeNvml(first, FakeGpu("GPU-b", second)), period_s=60.0)

    with of_two({"TotalEnergyConsumption": answering(itertools.count(0, 2000))}) as both, of_two({}) as one:
        time.sleep(1.01)
    energy = both.summary().energy
    assert energy is not None
    assert energy.joules == pytest.approx(3.0)
    assert one.summary().energy is None


def test_power_is_read_between_advances_of_the_counter(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0]  # ms
    monkeypatch.setattr("common.python.machine.telemetry.time.monotonic", lambda: clock[0] / 1000)
    nvml = FakeNvml(FakeGpu(answers={"TotalEnergyConsumption": lambda *_: 10_000 * (clock[0] // 100)}))  # 10 J every 100 ms, in mJ
    with Telemetry([gpu()], nvml, period_s=1000.0) as telemetry:
        for clock[0] in range(0, 951, 2):
            telemetry.summary()  # reads
        assert telemetry.watts(0.0, 0.95) == pytest.approx(100.0)  # with the 50 ms behind the last advance it would be 95
        assert telemetry.watts(0.65, 0.95) is None


def test_power_of_a_gpu_without_a_counter_is_not_told() -> None:
    with Telemetry([gpu()], FakeNvml(FakeGpu(answers={"Temperature": 40})), PERIOD_S) as telemetry:
        time.sleep(0.02)
    assert telemetry.watts(0.0, time.monotonic()) is None
    assert Telemetry([]).watts(0.0, 1.0) is None

"""The page that a scrape reads: histograms, quantiles as PromQL has them, and the GPU's gauges."""

import random
from types import SimpleNamespace

import pytest

from common.python.pairs.serving import Request
from common.serving import metrics
from tests.support.fake_nvml import FakeGpu, FakeNvml


def test_a_quantile_lies_in_the_bucket_of_the_true_one():
    rng = random.Random(0)
    durations = sorted(rng.lognormvariate(-5, 1) for _ in range(1001))
    histogram = metrics.Histogram("h", "A test.")
    for duration in durations:
        histogram.observe(duration)
    for share in (0.5, 0.95, 0.99):
        true = durations[round(share * 1000)]
        assert histogram.quantile(share) == pytest.approx(true, rel=0.5)


def test_a_quantile_is_linear_within_a_bucket():
    histogram = metrics.Histogram("h", "A test.")
    for _ in range(4):
        histogram.observe(0.25)  # between 0.2 and 0.3
    assert histogram.quantile(0.5) == pytest.approx(0.25)
    assert histogram.quantile(1.0) == pytest.approx(0.3)


def test_quantiles_of_nothing_and_of_what_lies_beyond_all_bounds():
    histogram = metrics.Histogram("h", "A test.")
    assert str(histogram.quantile(0.5)) == "nan"
    histogram.observe(1e6)
    assert histogram.quantile(0.5) == metrics.BOUNDS_S[-1]


def test_the_page_counts_first_tokens_and_gaps():
    latencies = metrics.Latencies()
    requests = [Request(i, [1], 4) for i in range(3)]
    latencies.arrived(requests)
    latencies.stepped(requests, {0}, metrics.now())
    latencies.stepped(requests[1:], {1, 2}, metrics.now())
    page = latencies.page({"gpu_power_watts": 512.5}).splitlines()
    assert "llm_time_to_first_token_seconds_count 3" in page
    assert "llm_inter_token_latency_seconds_count 2" in page
    assert 'llm_inter_token_latency_seconds_bucket{le="+Inf"} 2' in page
    assert "gpu_power_watts 512.5" in page


def test_histograms_of_one_name_share_a_header_and_differ_by_label():
    surprisal = metrics.Labelled("surprisal", "A test.", "phase")
    for phase, value in (("decode", 0.5), ("prefill", 2.0), ("decode", 0.25)):
        surprisal.of(phase).observe(value)
    lines = list(surprisal.lines())
    assert sum(line.startswith("# TYPE") for line in lines) == 1
    assert 'surprisal_bucket{phase="decode",le="0.3"} 1' in lines
    assert 'surprisal_count{phase="decode"} 2' in lines
    assert 'surprisal_sum{phase="prefill"} 2.0' in lines
    assert set(lines) < set(metrics.Latencies().page({}, surprisal).splitlines())


def test_prometheus_reads_the_page():
    parser = pytest.importorskip("prometheus_client.parser")
    latencies, surprisal = metrics.Latencies(), metrics.Labelled("surprisal", "A test.", "phase")
    latencies.arrived([Request(0, [1], 4)])
    latencies.stepped([Request(0, [1], 4)], set(), metrics.now())
    surprisal.of("decode").observe(1.0)
    families = {
        family.name: family for family in parser.text_string_to_metric_families(latencies.page({"gpu_power_watts": 1.0}, surprisal))
    }
    assert families["llm_time_to_first_token_seconds"].type == "histogram"
    assert families["gpu_power_watts"].type == "gauge"
    assert families["surprisal"].samples[0].labels["phase"] == "decode"


def test_gauges_that_a_driver_refuses_are_left_out():
    gpu = FakeGpu(answers={"PowerUsage": 250_000, "MemoryInfo": SimpleNamespace(used=3 << 30), "ClockInfo": 1980})
    found = metrics.gauges_of(FakeNvml(gpu), gpu)
    assert found == {"gpu_power_watts": 250.0, "gpu_memory_used_bytes": 3 << 30, "gpu_sm_clock_hertz": 1.98e9}


def test_on_a_cpu_the_host_is_read():
    assert metrics.Sensor("cpu").read()["host_memory_used_bytes"] > 0

"""What a serving workload may say, and the sentence for what it may not."""

from dataclasses import replace

import pytest

from common import Serving, Slo, Spec, Traffic, Workload
from common.python.errors import BenchmarkError
from common.python.pairs.serving import is_latency, is_serving_goal, unit_of

SLO = Slo(ttft_ms=100.0, tpot_ms=10.0)


def a_serving(arrivals="at_once", count=8):
    return Serving(
        traffic=lambda n: Traffic(count=count, prompt_tokens=(n, 2 * n), output_tokens=(1, 4), arrivals=arrivals),
        logits=lambda weights, tokens, first: None,
        vocabulary=16,
        atol=1e-3,
        slo=SLO,
    )


def a_workload(**changes):
    fields = {"inputs": dict, "time_at": {"n": 8}, "check_at": ({"n": 2},), "goal": "ttft_ms.p95", "serving": a_serving()}
    return Workload(**fields | changes)


@pytest.mark.parametrize("goal", ["ttft_ms.p50", "ttft_ms.p95", "tpot_ms", "itl_ms", "e2e_ms", "output_tokens_per_s", "goodput", "memory"])
def test_a_serving_workload_needs_neither_outputs_nor_a_reference(goal):
    workload = a_workload(goal=goal)
    assert workload.outputs(n=8) == {}
    assert workload.work(n=8) == {}


WRONG = {
    "no requests": ({"serving": None}, "goal='ttft_ms.p95' is a figure of served requests; expected serving"),
    "another goal": ({"goal": "time"}, "goal='time' and serving; expected memory or one of ttft_ms"),
    "a goal misspelt": ({"goal": "ttft.p95"}, "goal='ttft.p95' and serving"),
    "outputs too": ({"outputs": lambda n: {"y": Spec((n,), None)}}, "found serving and outputs; expected serving alone"),
    "a tolerance too": ({"rtol": 0.1}, "found serving and rtol"),
    "work too": ({"work": lambda n: {"bf16": n}}, "found serving and work"),
    "state too": ({"in_place": ("cache",)}, "found serving and in_place"),
    "a tail of few": ({"goal": "ttft_ms.p99"}, "8 requests at shape default; expected 500 a trace"),
    "beyond saturation": ({"serving": a_serving(("of_saturation", 1.2))}, "found arrivals at 1.2 of saturation and goal='ttft_ms.p95'"),
    "a negative rate": ({"serving": a_serving(("per_s", -1.0))}, "expected a positive rate"),
    "other arrivals": ({"serving": a_serving("in_bursts")}, "traffic arrivals='in_bursts'; expected"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_cannot_be_is_refused_in_a_sentence(wrong):
    changes, message = WRONG[wrong]
    with pytest.raises(BenchmarkError) as raised:
        a_workload(**changes)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_beyond_saturation_throughput_may_be_the_goal():
    assert a_workload(goal="goodput", serving=a_serving(("of_saturation", 1.5))).goal == "goodput"


def test_other_workloads_must_still_say_what_is_right():
    with pytest.raises(BenchmarkError, match=r"found no outputs; expected outputs=lambda \.\.\., or serving"):
        Workload(inputs=dict, time_at={"n": 1}, check_at=({"n": 1},), reference=lambda: None)


BAD_TRAFFIC = {
    "more shared than own": ({"shared_prefix": (2, 8)}, "found 8 shared prefix tokens and prompts of 8 tokens; expected fewer"),
    "groups of nothing": ({"shared_prefix": (2, 0)}, "expected both positive, or (0, 0) for none"),
    "no requests": ({"count": 0}, "expected at least one request"),
    "upside down": ({"output_tokens": (4, 2)}, "expected the least and the most, from 1 on"),
    "a mean above the most": ({"output_mean": 5.0}, "expected one between 1 and 4, the least and the most"),
    "no answer": ({"output_tokens": (0, 2)}, "expected the least and the most, from 1 on"),
}


@pytest.mark.parametrize("wrong", BAD_TRAFFIC)
def test_traffic_that_cannot_be_is_refused(wrong):
    changes, message = BAD_TRAFFIC[wrong]
    with pytest.raises(BenchmarkError) as raised:
        Traffic(**{"count": 4, "prompt_tokens": (8, 16), "output_tokens": (1, 4)} | changes)
    assert message in str(raised.value)


@pytest.mark.parametrize("fields", [{"ttft_ms": 0.0, "tpot_ms": 1.0}, {"ttft_ms": 1.0, "tpot_ms": float("inf")}])
def test_a_service_level_is_positive(fields):
    with pytest.raises(BenchmarkError, match="expected a positive number of milliseconds"):
        Slo(**fields)


@pytest.mark.parametrize(
    ("goal", "latency", "figure"),
    [
        ("ttft_ms.p99", True, True),
        ("ttft_ms.p42", False, False),
        ("goodput", False, True),
        ("goodput.p95", False, False),
        ("time", False, False),
    ],
)
def test_what_is_a_figure_of_served_requests(goal, latency, figure):
    assert (is_latency(goal), is_serving_goal(goal)) == (latency, figure)


def test_every_figure_has_a_unit():
    assert [unit_of(name) for name in ("e2e_ms.p95", "goodput", "queue_depth.max")] == ["ms", "share", "requests"]


def test_a_load_beyond_saturation_may_be_asked_for_whatever_the_goal():
    """Of a shape that the command line chose nothing is gated; the workload's own load is refused, above."""

    def traffic(n, load):
        return Traffic(count=8, prompt_tokens=(n, n), output_tokens=(1, 4), arrivals=("of_saturation", load))

    serving = replace(a_serving(), traffic=traffic)
    workload = a_workload(serving=serving, time_at={"n": 8, "load": 0.8}, check_at=({"n": 2, "load": 0.8},))
    assert workload.goal == "ttft_ms.p95"
    assert workload.serving.traffic_at({"n": 8, "load": 1.2}).share_of_saturation == 1.2
    with pytest.raises(BenchmarkError, match=r"found arrivals at 1\.2 of saturation"):
        a_workload(serving=serving, time_at={"n": 8, "load": 1.2}, check_at=({"n": 2, "load": 0.8},))

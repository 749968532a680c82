"""What requests saw, from the stamps of their tokens: latencies, throughput, goodput and queue depth.

TTFT: from when a request was due to its first token. ITL: from one token of a request to its next. TPOT: from its first token to its
last, over one token fewer than it got. End to end: from when it was due to its last token.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence

from common.python.gate.statistics import geometric_interval, t_quantile
from common.python.pairs.serving import LEAST_BEYOND, PERCENTILES, TAIL
from common.python.results import Block, Interval, ServedRequest


def ttft_ms(request: ServedRequest) -> float:
    """To the first token, from when the request was due."""
    return (request.tokens_us[0] - request.due_us) / 1e3


def tpot_ms(request: ServedRequest) -> float:
    """Of each token after the first, of a request with two or more."""
    return (request.tokens_us[-1] - request.tokens_us[0]) / (len(request.tokens_us) - 1) / 1e3


def e2e_ms(request: ServedRequest) -> float:
    """To the last token, from when the request was due."""
    return (request.tokens_us[-1] - request.due_us) / 1e3


def itl_ms(request: ServedRequest) -> list[float]:
    """Between tokens that follow each other."""
    return [(after - before) / 1e3 for before, after in zip(request.tokens_us, request.tokens_us[1:], strict=False)]


def is_good(request: ServedRequest, slo_ttft_ms: float, slo_tpot_ms: float) -> bool:
    """Whether a request was served within the service level."""
    within = len(request.tokens_us) < 2 or tpot_ms(request) <= slo_tpot_ms
    return within and ttft_ms(request) <= slo_ttft_ms


def queue_depth(requests: Sequence[ServedRequest]) -> list[tuple[int, int]]:
    """How many requests were due and had no token yet, over time: us from the trace's begin, and the depth from there on."""
    changes: dict[int, int] = {}
    for request in requests:
        changes[request.due_us] = changes.get(request.due_us, 0) + 1
        changes[request.tokens_us[0]] = changes.get(request.tokens_us[0], 0) - 1
    depth, steps = 0, []
    for at_us in sorted(changes):
        depth += changes[at_us]
        steps.append((at_us, depth))
    return steps


def mean_depth(requests: Sequence[ServedRequest]) -> float:
    """The mean of the queue's depth from the trace's begin to its last token."""
    steps = queue_depth(requests)
    end_us = max(request.tokens_us[-1] for request in requests)
    ends = [*(at for at, _ in steps[1:]), end_us]
    return sum(depth * (end - at) for (at, depth), end in zip(steps, ends, strict=True)) / end_us


def percentile(values: Sequence[float], share: float) -> float:
    """The value that `share` of the values do not exceed, by linear interpolation between the two nearest."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    return ordered[low] + (place - low) * (ordered[min(low + 1, len(ordered) - 1)] - ordered[low])


def figures_of_traces(traces: Sequence[Sequence[ServedRequest]], slo_ttft_ms: float, slo_tpot_ms: float) -> dict[str, float]:
    """Every figure of some traces that one process served; p99 where ten requests lie beyond it. A latency's own name is its p50."""
    requests = [request for trace in traces for request in trace]
    several = [request for request in requests if len(request.tokens_us) > 1]
    latencies = {
        "ttft_ms": [ttft_ms(request) for request in requests],
        "itl_ms": [gap for request in several for gap in itl_ms(request)],
        "tpot_ms": [tpot_ms(request) for request in several],
        "e2e_ms": [e2e_ms(request) for request in requests],
    }
    figures: dict[str, float] = {}
    for name, values in latencies.items():
        for label, share in PERCENTILES.items():
            if values and (label != TAIL or (1 - share) * len(requests) >= LEAST_BEYOND - 1e-9):
                figures[f"{name}.{label}"] = percentile(values, share)
    seconds = sum(max(1, *(request.tokens_us[-1] for request in trace)) for trace in traces) / 1e6
    figures["output_tokens_per_s"] = sum(len(request.tokens_us) for request in requests) / seconds
    figures["requests_per_s"] = len(requests) / seconds
    figures["goodput"] = sum(is_good(request, slo_ttft_ms, slo_tpot_ms) for request in requests) / len(requests)
    figures["queue_depth.mean"] = statistics.fmean(mean_depth(trace) for trace in traces)
    figures["queue_depth.max"] = float(max(depth for trace in traces for _, depth in queue_depth(trace)))
    return figures


def figures_of_blocks(blocks: Sequence[Block], slo_ttft_ms: float, slo_tpot_ms: float) -> dict[str, float]:
    """The figures of what one process served."""
    return figures_of_traces([block.requests for block in blocks], slo_ttft_ms, slo_tpot_ms)


def figure_named(figures: Mapping[str, float], goal: str) -> float | None:
    """The figure that `goal` names; None where there is none."""
    return figures.get(goal, figures.get(f"{goal}.p50"))


def interval_over(values: Sequence[float]) -> Interval:
    """The mean of a figure over process pairs, two or more, with its 95 % interval: geometric where all are positive."""
    if min(values) == max(values):
        return Interval(estimate=values[0], low=values[0], high=values[0])
    if min(values) > 0:
        return geometric_interval(values)
    half = t_quantile(len(values) - 1, 0.975) * statistics.stdev(values) / math.sqrt(len(values))
    mean = statistics.fmean(values)
    return Interval(estimate=mean, low=mean - half, high=mean + half)

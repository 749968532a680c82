"""A search that stops early: candidates are timed in rounds, and those that are surely slower than the best leave the race."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import torch

Candidate = TypeVar("Candidate")

CALLS = 10
T_95 = 2.8  # Student's t at 95 % for four degrees of freedom; with more samples it is on the safe side


def interval(samples: Sequence[float]) -> tuple[float, float]:
    """A 95 % interval of the mean of at least five samples: its ends."""
    half = T_95 * statistics.stdev(samples) / math.sqrt(len(samples))
    return statistics.fmean(samples) - half, statistics.fmean(samples) + half


def fastest(candidates: Iterable[Candidate], time: Callable[[Candidate], float], rounds: int = 20, least: int = 5) -> Candidate:
    """The candidate with the least mean time; time(candidate) returns one sample, in any unit. Raises ValueError for no candidate.

    In each round every candidate that is left is timed once, so what drifts meets all of them. After `least` rounds, at least 5, a
    candidate leaves when its interval lies above that of the best. The race ends when one is left, or after `rounds`.
    """
    samples: dict[Candidate, list[float]] = {candidate: [] for candidate in candidates}
    if not samples:
        raise ValueError("found no candidate; expected at least one")
    for done in range(1, rounds + 1):
        if len(samples) == 1:
            break
        for candidate, times in samples.items():
            times.append(time(candidate))
        if done >= least:
            best = _best(samples)
            bar = interval(samples[best])[1]
            samples = {each: times for each, times in samples.items() if each == best or interval(times)[0] <= bar}
    return _best(samples) if len(samples) > 1 else next(iter(samples))


def _best(samples: dict[Candidate, list[float]]) -> Candidate:
    return min(samples, key=lambda each: statistics.fmean(samples[each]))


def gpu_clock(steps: Mapping[Candidate, Callable[[], Any]]) -> Callable[[Candidate], float]:
    """A function of a candidate: how many milliseconds a call of its step takes the GPU, the median of CALLS, each with a cold L2.

    A call replays a CUDA graph, which the host launches at once. Otherwise a step of two short kernels would be timed by how long the
    host takes to launch the second. The L2 is filled by reading: what a write left there would first have to go back to memory.
    """
    import triton  # an optional package, which whoever only reads `fastest` may lack

    triton.runtime.driver.active.get_device_interface()  # says where no GPU runs
    graphs: dict[Candidate, torch.cuda.CUDAGraph] = {}
    for candidate, step in steps.items():
        step()  # compiles, which a graph may not
        graphs[candidate] = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graphs[candidate]):
            step()
        graphs[candidate].replay()  # a first one also brings the graph to the GPU
    other = torch.zeros(torch.cuda.get_device_properties().L2_cache_size, device="cuda")  # four times the L2

    def milliseconds(candidate: Candidate) -> float:
        times = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(CALLS)]
        for start, end in times:
            other.amax()
            start.record()
            graphs[candidate].replay()
            end.record()
        torch.cuda.synchronize()
        return float(statistics.median(start.elapsed_time(end) for start, end in times))

    return milliseconds

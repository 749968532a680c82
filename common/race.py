"""A search that stops early: candidates are timed in rounds, and those that are surely slower than the best leave the race."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import torch

Candidate = TypeVar("Candidate")

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


def stopwatch(step: Callable[[], Any]) -> Callable[[], float]:
    """A function that says how many milliseconds a call of `step` takes the GPU: a mean of several, each with a cold L2.

    Each call replays a CUDA graph, which the host launches at once. Otherwise a step of two short kernels would be timed by how long
    the host takes to launch the second.
    """
    from triton.testing import do_bench

    step()  # compiles, which a graph may not
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return lambda: float(do_bench(graph.replay, warmup=1, rep=1, return_mode="mean"))

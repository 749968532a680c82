"""Traces: the requests of a workload's traffic, drawn from a seed that no side knows."""

from __future__ import annotations

import random
from dataclasses import dataclass

from common.python.errors import BenchmarkError
from common.python.pairs.serving import Traffic


@dataclass(frozen=True)
class Planned:
    """A request to come: when it is due, in seconds from the trace's begin, its prompt, and how many tokens it asks for."""

    due_s: float
    prompt: tuple[int, ...]
    output_tokens: int


def draw_trace(traffic: Traffic, vocabulary: int, seed: int, rate_per_s: float) -> tuple[Planned, ...]:
    """The requests of one trace, in the order in which they are due; with a rate of 0 all are due at once."""
    rng = random.Random(seed)
    groups, shared = traffic.shared_prefix
    prefixes = [_tokens(traffic, vocabulary, rng, shared) for _ in range(groups)]
    due_s = 0.0
    requests = []
    for position in range(traffic.count):
        if rate_per_s and position:
            due_s += rng.expovariate(rate_per_s)
        prefix = rng.choice(prefixes) if prefixes else ()
        length = rng.randint(*traffic.prompt_tokens)
        prompt = (*prefix, *_tokens(traffic, vocabulary, rng, length - len(prefix)))
        requests.append(Planned(due_s, prompt, _answer_length(traffic, rng)))
    return tuple(requests)


def _answer_length(traffic: Traffic, rng: random.Random) -> int:
    low, high = traffic.output_tokens
    if traffic.output_mean is None:
        return rng.randint(low, high)
    return min(high, low + int(rng.expovariate(1 / (traffic.output_mean - low))))


def _tokens(traffic: Traffic, vocabulary: int, rng: random.Random, count: int) -> tuple[int, ...]:
    if traffic.prompts is None:
        return tuple(rng.choices(range(vocabulary), k=count))
    drawn = tuple(int(token) for token in traffic.prompts(rng, count))
    if len(drawn) != count or not all(0 <= token < vocabulary for token in drawn):
        raise BenchmarkError(f"traffic prompts drew {len(drawn)} tokens; expected {count}, each from 0 to {vocabulary - 1}")
    return drawn

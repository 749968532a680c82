"""Serving: what a workload says of requests and their arrivals, and what a side is given to answer them.

One step of such a workload answers one trace of requests, which a client process draws, sends and stamps.
"""

from __future__ import annotations

import inspect
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from common.python.errors import BenchmarkError

LATENCIES = ("ttft_ms", "itl_ms", "tpot_ms", "e2e_ms")
PERCENTILES = {"p50": 0.50, "p95": 0.95, "p99": 0.99}
RATES = ("output_tokens_per_s", "requests_per_s", "goodput")
LEAST_BEYOND = 10  # requests that must lie beyond a percentile above p95
TAIL = "p99"
FEWEST_FOR_TAIL = math.ceil(LEAST_BEYOND / (1 - PERCENTILES[TAIL]) / 2)  # a trace: a process serves two

LOAD = "arrival_poisson"
"""The shape entry that states the offered load as a share of saturation, where a workload lets the command line choose it."""

ArrivalKind = Literal["per_s", "of_saturation"]
Arrivals = Literal["at_once"] | tuple[ArrivalKind, float]
AT_ONCE: Arrivals = "at_once"


@dataclass(frozen=True)
class Slo:
    """The service level of one request: at most so many ms to its first token, and so many for each token after it."""

    ttft_ms: float
    tpot_ms: float

    def __post_init__(self) -> None:
        for name, bound in vars(self).items():
            if not 0 < bound < math.inf:
                raise BenchmarkError(f"slo {name}={bound}; expected a positive number of milliseconds")


@dataclass(frozen=True)
class Traffic:
    """One trace of `count` requests, drawn anew for each timed one. Lengths are in tokens, uniform from the first to the second.

    With `output_mean` answers are of mixed lengths, as people's are: most are short and a few long. What is beyond the least is
    exponential, of that mean before it is cut at the most.
    `shared_prefix` is how many groups of requests there are, and how many first tokens those of a group share.
    `arrivals` is "at_once", or a Poisson process: ("per_s", 40.0) or, as a share of the baseline's closed-loop throughput,
    ("of_saturation", 0.8). `prompts(rng, count)` draws so many tokens of text; None: uniform over the vocabulary.
    """

    count: int
    prompt_tokens: tuple[int, int]
    output_tokens: tuple[int, int]
    output_mean: float | None = None
    shared_prefix: tuple[int, int] = (0, 0)
    arrivals: Arrivals = AT_ONCE
    prompts: Callable[[random.Random, int], Sequence[int]] | None = None

    def __post_init__(self) -> None:
        if self.count < 1:
            raise BenchmarkError(f"traffic count={self.count}; expected at least one request")
        for name in ("prompt_tokens", "output_tokens"):
            low, high = vars(self)[name]
            if not 1 <= low <= high:
                raise BenchmarkError(f"traffic {name}=({low}, {high}); expected the least and the most, from 1 on")
        low, high = self.output_tokens
        if self.output_mean is not None and not low < self.output_mean < high:
            raise BenchmarkError(f"traffic output_mean={self.output_mean}; expected one between {low} and {high}, the least and the most")
        groups, tokens = self.shared_prefix
        if tokens >= self.prompt_tokens[0]:
            found = f"found {tokens} shared prefix tokens and prompts of {self.prompt_tokens[0]} tokens"
            raise BenchmarkError(f"traffic: {found}; expected fewer, so that every prompt has tokens of its own")
        if groups < 0 or tokens < 0 or (groups == 0) != (tokens == 0):
            raise BenchmarkError(f"traffic shared_prefix=({groups}, {tokens}); expected both positive, or (0, 0) for none")
        self._require_arrivals()

    def _require_arrivals(self) -> None:
        if self.arrivals == AT_ONCE:
            return
        if not isinstance(self.arrivals, tuple) or self.arrivals[0] not in get_args(ArrivalKind):
            raise BenchmarkError(f'traffic arrivals={self.arrivals!r}; expected "at_once", ("per_s", x) or ("of_saturation", x)')
        if not 0 < self.arrivals[1] < math.inf:
            raise BenchmarkError(f"traffic arrivals={self.arrivals!r}; expected a positive rate")

    @property
    def share_of_saturation(self) -> float:
        """The offered load as a share of the baseline's closed-loop throughput; 0 where it is not stated as one."""
        return self.arrivals[1] if isinstance(self.arrivals, tuple) and self.arrivals[0] == "of_saturation" else 0.0

    def rate_per_s(self, saturation_per_s: float) -> float:
        """Requests per second where saturation is that many; 0: all at once."""
        if not isinstance(self.arrivals, tuple):
            return 0.0
        kind, value = self.arrivals
        return value if kind == "per_s" else value * saturation_per_s


@dataclass(frozen=True)
class Serving:
    """Workload(serving=Serving(...)), in place of `outputs` and `reference`; the weights are its `constants`.

    traffic(**shape)            the trace at a shape
    logits(..., tokens, first)  what the weights say of one request alone: float32 logits behind each of tokens[first:], a row each, of
                                the int64 `tokens` on the weights' device. It asks for inputs and shape entries by name. Weights come in
                                the types they have, and are upcast a layer at a time
    vocabulary                  number of tokens, which is the width of a row
    atol                        how far a token's logit may be below the largest, and a probed logit from what it is; in standard
                                deviations of its row
    slo                         what counts for goodput
    changes                     `logits` of the optimized side, where it changes the weights' precision by design: the dequantized model's
    """

    traffic: Callable[..., Traffic]
    logits: Callable[..., Any]
    vocabulary: int
    atol: float
    slo: Slo
    changes: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        if self.vocabulary < 2:
            raise BenchmarkError(f"serving vocabulary={self.vocabulary}; expected at least two tokens")
        if not 0 < self.atol < math.inf:
            raise BenchmarkError(f"serving atol={self.atol}; expected a positive number of standard deviations")

    def logits_of(self, side: str) -> Callable[..., Any]:
        """The logits that `side` (baseline, optimized, library) is held to."""
        return self.changes if self.changes is not None and side == "optimized" else self.logits

    def traffic_at(self, shape: Mapping[str, Any]) -> Traffic:
        """The traffic at `shape`. Raises BenchmarkError where the workload returns none."""
        named = inspect.signature(self.traffic).parameters
        takes_all = any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in named.values())
        traffic: Any = self.traffic(**{key: value for key, value in shape.items() if takes_all or key in named})
        if not isinstance(traffic, Traffic):
            raise BenchmarkError(f"serving: traffic returned a {type(traffic).__name__}; expected Traffic(...)")
        return traffic


@dataclass(frozen=True)
class Request:
    """A request that has arrived: its prompt's tokens, and a bound of its answer's; `emit` tells when it has all."""

    id: int
    prompt: list[int]
    most_tokens: int


def is_latency(goal: str) -> bool:
    """Whether `goal` is a latency: `tpot_ms`, or a percentile of one, `ttft_ms.p95`."""
    name, dot, percentile = goal.partition(".")
    return name in LATENCIES and (not dot or percentile in PERCENTILES)


def is_serving_goal(goal: str) -> bool:
    """Whether `goal` is a figure of served requests."""
    return is_latency(goal) or goal in RATES


def is_lower_better(goal: str) -> bool:
    """Whether less of a figure is better: of latencies."""
    return is_latency(goal)


_UNITS = {"output_tokens_per_s": "tokens/s", "requests_per_s": "requests/s", "goodput": "share", "queue_depth": "requests"}


def unit_of(figure: str) -> str:
    """The unit of a figure of served requests: ms of a latency."""
    return "ms" if is_latency(figure) else _UNITS[figure.partition(".")[0]]

"""Work that a side hides: outside its timed calls, seen by the parent's clock, and behind the clock's stop, seen by an event.

Around a timed call both processes do the same: they write new inputs, put the caches in their state and wait. A side that forges
its samples, or works outside the timed span, takes longer there by what it hides.

Where the host's launch latency is hidden, the host queues a step while the device stands still: that is no part of the time, and
by design. It may take as long as many launches do, and a step that takes longer is timed with its latency in it.

Behind the stop of a sample that is looked at stands a second event, which the driver puts behind all work of the context on any stream
(cuCtxRecordEvent). A result is a median of samples, so it is the median of looks that tells: a step that leaves work behind in fewer
than half of its samples gains nothing by it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from common.python.gate.statistics import t_quantile
from common.python.results import BASELINE
from common.python.wording import time_text

_CONFIDENCE = 0.999
_ORDER_CONFIDENCE = 0.98  # of the bound that outliers do not move: with six units, all of them
_SHARE_OF_CALL = 0.5  # of the baseline's call: less is not worth hiding
_SHARE_OF_AROUND = 0.25  # of what is around it: caches that a step leaves in another state are honest, and smaller


@dataclass(frozen=True)
class Span:
    """A block of `samples` that took `wall_s` by this clock, of which its side claims `claimed_s` for the timed calls.

    `queued_s` are those in which it queued them on a stream that was held. Of `looks` calls the outputs were kept, which takes its time.
    """

    wall_s: float
    claimed_s: float
    samples: int
    queued_s: float = 0.0
    looks: int = 0


@dataclass
class WallClock:
    """What the parent saw: seconds around each timed call and of the call itself, by side, a value a unit."""

    around_s: dict[str, list[float]] = field(default_factory=dict)
    call_s: dict[str, list[float]] = field(default_factory=dict)

    def saw(self, side: str, spans: Sequence[Span]) -> None:
        """The blocks of `side` in a unit; those with the fewest looks count, which are the same of every side."""
        fewest = min(span.looks for span in spans)
        quiet = [span for span in spans if span.looks == fewest]
        samples = sum(span.samples for span in quiet)
        around_s = sum(span.wall_s - span.claimed_s - span.queued_s for span in quiet)
        self.around_s.setdefault(side, []).append(around_s / samples)
        self.call_s.setdefault(side, []).append(sum(span.claimed_s for span in quiet) / samples)

    def hidden(self) -> str:
        """The side that surely takes longer around its calls than the baseline by much of a call, in a sentence, or nothing."""
        for side in self.around_s:
            if side != BASELINE and (least := _least_difference(self.around_s, side)) > self._tolerated():
                found = time_text(least * 1e9)
                return f"{side}: its process takes at least {found} longer around a timed call than the baseline's; expected the same"
        return ""

    def _tolerated(self) -> float:
        if BASELINE not in self.call_s:
            return math.inf
        call_s, around_s = (statistics.fmean(seen[BASELINE]) for seen in (self.call_s, self.around_s))
        return max(_SHARE_OF_CALL * call_s, _SHARE_OF_AROUND * around_s)


def _least_difference(around_s: Mapping[str, Sequence[float]], side: str) -> float:
    """What `side` surely takes longer than the baseline, over paired units.

    The larger of two lower bounds: of the 99.9 % interval by Student's t, and of the median by order, for a side some of whose units
    take far longer still.
    """
    gaps = sorted(mine - other for mine, other in zip(around_s[side], around_s.get(BASELINE, ()), strict=False))
    if len(gaps) < 2:
        return -math.inf
    half = t_quantile(len(gaps) - 1, 0.5 + _CONFIDENCE / 2) * statistics.stdev(gaps) / math.sqrt(len(gaps))
    below = _surely_below_median(len(gaps))
    return max(statistics.fmean(gaps) - half, gaps[below - 1] if below else -math.inf)


def _surely_below_median(count: int) -> int:
    """The rank, from 1, of the largest of `count` values that lies below their median with that confidence; 0 if none does."""
    rank, chance = 0, 0.0
    while (chance := chance + math.comb(count, rank) / 2**count) <= 1 - _ORDER_CONFIDENCE:
        rank += 1
    return rank


_TAIL_NS = 5_000.0  # from the stop of a held stream to the event behind all: 1.5 to 2.4 us on an H200, where nothing is left
_PEERS_TAIL_NS = 10_000.0  # of a step on several GPUs: 6.2 and 6.7 us on two H200s, whose last work was waited for by an event
_LONE_TAIL_NS = 50_000.0  # of few samples, or where the host's time between the two events is in it
_TAIL_SHARE = 0.003  # of a call: less moves no figure that a gate tells. H100s saw the last copy to a host end after 5.6 to 8.3 us
_SURE_SAMPLES = 3


def unfinished(behind_ns: Sequence[float], call_ns: float, *, held: bool, gpus: int = 1) -> str:
    """A sentence on work that a side leaves behind the clock, or nothing.

    `behind_ns` are those until all was done, of each sample, `held` or not, and `call_ns` those of the side's median call on `gpus`.
    """
    least_ns = _PEERS_TAIL_NS if gpus > 1 else _TAIL_NS
    limit_ns = max(least_ns, _TAIL_SHARE * call_ns) if held and len(behind_ns) >= _SURE_SAMPLES else _LONE_TAIL_NS
    if not behind_ns or (tail_ns := statistics.median(behind_ns)) <= limit_ns:
        return ""
    found = f"found the GPU at work for {tail_ns / 1e3:.1f} us after the clock had stopped, in the median of {len(behind_ns)} samples"
    return f"{found}; expected all work done by then, and at most {limit_ns / 1e3:.0f} us"

"""A red row is red only if it stands among all that a run gates, and if a second measurement of it alone says so too."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain

from common.python.counters import Moved, ranked
from common.python.gate import FALSE_DISCOVERY, discoveries
from common.python.results import OPTIMIZED, PairResult, Verdict, VerdictKind
from common.python.standards import name_of
from common.python.stats import PAIR, climbed

_MOST_TOLD = 4
_AS_ACCEPTED = 1.01  # a small loss has small reasons; most counters of two runs of the same code are nearer


def standing(rows: Sequence[PairResult]) -> list[PairResult]:
    """`rows`, with each red verdict turned to INCONCLUSIVE that, among so many gated figures, chance may have made."""
    probabilities = {
        (row.target, shape, name): change.p_worse
        for row in rows
        for shape, verdict in row.verdicts.items()
        for name, change in verdict.changes.items()
    }
    stands = dict(zip(probabilities, discoveries([*probabilities.values()]), strict=True))

    def settled(target: str, shape: str, verdict: Verdict) -> Verdict:
        red = [(target, shape, name) for name in red_figures(verdict)]
        if verdict.kind is not VerdictKind.REGRESSED or any(stands[key] for key in red):
            return verdict
        least = min(probabilities[key] for key in red)
        doubt = f"p = {least:.2g} does not stand among {len(stands)} gated figures at {FALSE_DISCOVERY:.0%}"
        return verdict.model_copy(update={"kind": VerdictKind.INCONCLUSIVE, "sentence": f"{verdict.sentence}; {doubt}"})

    return [
        row.model_copy(update={"verdicts": {shape: settled(row.target, shape, verdict) for shape, verdict in row.verdicts.items()}})
        for row in rows
    ]


def is_to_be_confirmed(row: PairResult) -> bool:
    """Whether a red verdict of this row was measured once only, and is not accepted."""
    return any(
        verdict.kind is VerdictKind.REGRESSED and not verdict.confirmed and not verdict.accepted for verdict in row.verdicts.values()
    )


def confirmed(first: PairResult, second: PairResult) -> PairResult:
    """The first measurement with what the second makes of its red verdicts; the second where that did not even pass."""
    if second.status is not first.status:
        return second
    verdicts = {
        shape: _agreed(verdict, second.verdicts[shape]) if verdict.kind is VerdictKind.REGRESSED else verdict
        for shape, verdict in first.verdicts.items()
    }
    return first.model_copy(update={"verdicts": verdicts})


def red_twice(row: PairResult) -> list[str]:
    """The shapes at which a second measurement said that the row is red."""
    return [shape for shape, verdict in row.verdicts.items() if verdict.confirmed]


def why_red(row: PairResult, shape: str, accepted: Mapping[str, Mapping[str, float]]) -> list[str]:
    """What a profile at a red shape tells, a line each: counters by which a red side and the one it stands on differ most, the most first.

    A rung stands on the step before it, the optimized side of a pair on the baseline. Then come those of each of these sides that differ
    most from `accepted`, its own when it was accepted, where they were kept.
    """
    timing, red = row.timings[shape], red_figures(row.verdicts[shape])
    counted = {side: result.profile.counters for side, result in row.sides.items() if result.profile and result.profile.counters}
    steps = [step for step in climbed(timing) if step[1] != OPTIMIZED]
    ratios = [sides for sides in (PAIR, *steps) if name_of(sides[1], timing.goal) in red] or [PAIR]
    lines = [
        _told(f"{after} and {before}", ranked(after, counted[before], counted[after]))
        for before, after in ratios
        if {before, after} <= counted.keys()
    ]
    both = [side for side in dict.fromkeys(chain.from_iterable(ratios)) if side in counted and side in accepted]
    return lines + [_told(f"{side} now and as it was accepted", ranked(side, accepted[side], counted[side], _AS_ACCEPTED)) for side in both]


def _told(what: str, moved: Sequence[Moved]) -> str:
    return f"red, and by what {what} differ most: {', '.join(each.words for each in moved[:_MOST_TOLD]) or 'no counter'}"


def unconfirmed(row: PairResult, why: str) -> PairResult:
    """The row where there could be no second measurement."""
    doubt = {"kind": VerdictKind.INCONCLUSIVE}
    verdicts = {
        shape: verdict.model_copy(update=doubt | {"sentence": f"{verdict.sentence}; {why}"})
        if verdict.kind is VerdictKind.REGRESSED
        else verdict
        for shape, verdict in row.verdicts.items()
    }
    return row.model_copy(update={"verdicts": verdicts})


def red_figures(verdict: Verdict) -> list[str]:
    """The names of the figures that make a verdict red."""
    return [name for name, change in verdict.changes.items() if change.kind is VerdictKind.REGRESSED]


def _agreed(first: Verdict, second: Verdict) -> Verdict:
    if set(red_figures(first)) & set(red_figures(second)):
        return first.model_copy(update={"confirmed": True, "sentence": f"{first.sentence}; a second measurement agrees: {second.sentence}"})
    doubt = f"a second measurement says {second.kind}: {second.sentence}"
    return first.model_copy(update={"kind": VerdictKind.INCONCLUSIVE, "sentence": f"{first.sentence}; {doubt}"})

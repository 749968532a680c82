"""What a run makes of its verdicts: red rows are confirmed, good ones accepted where that is asked, and all of them earn an exit code.

A red row is red only if it stands among all that a run gates, and if a second measurement of it alone says so too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from common.python.errors import ExitCode, Status
from common.python.gate.expectations import (
    Expectation,
    expectation_of,
    expectations_path,
    gpu_key,
    keep_expectations,
    provenance_of,
    ratio_of,
    refusal,
    too_wide_rungs,
)
from common.python.gate.statistics import FALSE_DISCOVERY, discoveries
from common.python.gate.verdicts import PROMOTION, Standards, name_of
from common.python.machine.description import Machine
from common.python.results import PairResult, Run, StopReason, Verdict, VerdictKind
from common.python.session.planning import Plan
from common.python.wording import at_shape


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
    """The row of two measurements of the same pair: the first, with every REGRESSED verdict replaced by what both agree on.

    If the second measurement ended with another status, such as a failure, its row is returned instead.
    """
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


def accept(row: PairResult, plan: Plan, standards: Standards, run: Run, machine: Machine) -> PairResult:
    """Write each timing of `row` that may be expected from now on into its folder's file; the row says which, and why not the others."""
    kept: dict[str, Expectation] = {}
    verdicts, notes = dict(row.verdicts), list(row.notes)
    for shape, timing in row.timings.items():
        ratio = ratio_of(timing)
        band = standards.band_to_accept(plan, timing)
        why_not = standards.refuses(plan, shape) or refusal(timing, band)
        if why_not or ratio is None:
            notes.append(f"@{shape} is not accepted: {why_not}")
            continue
        expected = expectation_of(row, timing, ratio, provenance_of(run, machine, timing))
        wide = too_wide_rungs(timing, band)
        notes += [f"{name_of(side, timing.goal)}{at_shape(shape)} is not accepted: {why}" for side, why in wide.items()]
        certain = {side: rung for side, rung in expected.rungs.items() if side not in wide}
        kept[shape] = expected.model_copy(update={"rungs": certain})
        verdicts[shape] = _accepted(verdicts[shape])
    if kept:
        path = expectations_path(plan.selection.pair.workload.parent, gpu_key(plan.gpus))
        keep_expectations(path, plan.selection.pair.name, kept)
        notes.append(f"accepted into {path.name}: {', '.join(kept)}")
    return row.model_copy(update={"verdicts": verdicts, "notes": tuple(notes)})


def _accepted(verdict: Verdict) -> Verdict:
    return verdict.model_copy(update={"accepted": True, "sentence": f"{verdict.sentence.replace(PROMOTION, '')}; accepted"})


_WRONG = {Status.WRONG_RESULT, Status.INPUT_MODIFIED, Status.STREAM_ESCAPE, Status.IMPLAUSIBLE, Status.UNPROVEN}
_BROKEN = {Status.BUILD_FAILED, Status.LAUNCH_FAILED, Status.CRASHED, Status.TIMEOUT, Status.OUT_OF_MEMORY}


def exit_code_of(
    rows: Iterable[PairResult],
    *,
    interrupted: bool = False,
    proofs_only: bool = False,
    fail_on_inconclusive: bool = False,
    require_expectations: bool = False,
) -> ExitCode:
    """The exit code that these rows earn; the first that applies of 130, 6, 4, 7, 2, 3, 5.

    `proofs_only` says that checking proofs alone counts as success (`verify` where no side can run).
    """
    rows = list(rows)
    statuses = {row.status for row in rows}
    verdicts = [verdict for row in rows for verdict in row.verdicts.values() if not verdict.accepted]
    kinds = {verdict.kind for verdict in verdicts}
    proven = any(proof.state == "proven" for row in rows for proof in row.proofs)
    measured = Status.PASSED in statuses or (proofs_only and proven)
    gated = any(verdict.changes for row in rows for verdict in row.verdicts.values())
    throttled = any(timing.stop_reason is StopReason.THROTTLED for row in rows for timing in row.timings.values())
    earned = {
        ExitCode.INTERRUPTED: interrupted,
        ExitCode.UNFIT: throttled,
        ExitCode.WRONG: bool(statuses & _WRONG),
        ExitCode.BROKEN: bool(statuses & _BROKEN),
        ExitCode.REGRESSION: VerdictKind.REGRESSED in kinds,
        ExitCode.INCONCLUSIVE: fail_on_inconclusive and VerdictKind.INCONCLUSIVE in kinds,
        ExitCode.NOTHING_MEASURED: not measured or (require_expectations and not gated),
    }
    return next((code for code, applies in earned.items() if applies), ExitCode.GOOD)


_WORST_FIRST = (
    ExitCode.TERMINATED,
    ExitCode.HUNG_UP,
    ExitCode.INTERRUPTED,
    ExitCode.FULL_DISK,
    ExitCode.UNFIT,
    ExitCode.WRONG,
    ExitCode.BROKEN,
    ExitCode.REGRESSION,
    ExitCode.INCONCLUSIVE,
    ExitCode.USAGE,
    ExitCode.NOTHING_MEASURED,
)


def worst_of(codes: Iterable[int]) -> ExitCode:
    """The exit code of several commands together: the worst of theirs, in the order in which one run picks its own."""
    found = set(codes)
    return next((code for code in _WORST_FIRST if code in found), ExitCode.GOOD)

"""--accept-regressions: what was measured becomes what is expected, or a sentence says why not."""

from __future__ import annotations

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
from common.python.gate.verdicts import PROMOTION, Standards, name_of
from common.python.machine.description import Machine
from common.python.results import PairResult, Run, Verdict
from common.python.session.planning import Plan
from common.python.wording import at_shape


def accept(row: PairResult, plan: Plan, standards: Standards, run: Run, machine: Machine) -> PairResult:
    """Write each timing of `row` that may be expected from now on into its folder's file; the row says which, and why not the others."""
    kept: dict[str, Expectation] = {}
    verdicts, notes = dict(row.verdicts), list(row.notes)
    for shape, timing in row.timings.items():
        ratio = ratio_of(timing)
        band = standards.allowance(plan, timing.units).band_percent
        why_not = standards.refuses(plan, shape) or refusal(timing, band)
        if why_not or ratio is None:
            notes.append(f"{shape} is not accepted: {why_not}")
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

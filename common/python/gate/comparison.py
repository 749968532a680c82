"""Two runs, row by row: how much each gated figure changed, and whether that is more than chance."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from common.python.errors import Status
from common.python.gate.noise_floor import class_of_units
from common.python.gate.outcome import standing
from common.python.gate.statistics import gated_logs, means_between, rungs_timed
from common.python.gate.verdicts import changes_of, name_of, verdict_of
from common.python.results import OPTIMIZED, PairResult, PairTiming, Run, Verdict, VerdictKind
from common.python.wording import at_shape, percent_text

_CONDITIONS = ("shape", "device", "clock", "cache", "mode", "goal")


def other_conditions(before: PairTiming, after: PairTiming) -> str:
    """What makes two timings answers to different questions, in words: `under another shape`; "" if nothing does."""
    differing = [name for name in _CONDITIONS if vars(before)[name] != vars(after)[name]]
    return f"under another {' and '.join(differing)}" if differing else ""


@dataclass(frozen=True)
class Comparison:
    """Run B against run A; the band is that of `gate_percent`, or the higher of the noise floors that the two knew of."""

    run_a: Run
    rows_a: Mapping[str, PairResult]
    run_b: Run
    rows_b: Mapping[str, PairResult]
    gate_percent: float

    def rows(self) -> list[PairResult]:
        """The rows of B that passed in both runs, with verdicts on how they differ from A."""
        both = [row for row in self.rows_b.values() if row.target in self.rows_a and self._passed_twice(row.target)]
        return standing([row.model_copy(update={"verdicts": dict(self._verdicts(row))}) for row in both])

    def missing(self) -> list[str]:
        """A sentence for every row and shape that only one run has, or that passed in one only."""
        found = []
        for target in sorted(self.rows_a.keys() | self.rows_b.keys()):
            if not (target in self.rows_a and target in self.rows_b):
                found.append(f"{target}: only in {'A' if target in self.rows_a else 'B'}")
            elif not self._passed_twice(target):
                found.append(f"{target}: {self.rows_a[target].status} in A, {self.rows_b[target].status} in B")
            else:
                shapes_a, shapes_b = (rows[target].timings.keys() for rows in (self.rows_a, self.rows_b))
                found += [
                    f"{target}{at_shape(shape)}: timed only in {'A' if shape in shapes_a else 'B'}" for shape in sorted(shapes_a ^ shapes_b)
                ]
        return found

    def _passed_twice(self, target: str) -> bool:
        return self.rows_a[target].status is self.rows_b[target].status is Status.PASSED

    def _verdicts(self, row: PairResult) -> Iterator[tuple[str, Verdict]]:
        past = self.rows_a[row.target]
        for shape, timing in row.timings.items():
            if shape in past.timings:
                yield shape, self._verdict(past.timings[shape], timing)

    def _verdict(self, before: PairTiming, after: PairTiming) -> Verdict:
        if not (gated_logs(before.units, before.goal) and gated_logs(after.units, after.goal)):
            return Verdict(kind=VerdictKind.UNGATED, sentence="a half has no speedup")
        step = class_of_units(after.clock, after.units)
        band = max(self.gate_percent, *(run.noise_percent.get(step, 0.0) for run in (self.run_a, self.run_b)))
        both = [OPTIMIZED, *(rung for rung in rungs_timed(after) if rung in before.rungs)]
        expected = means_between(before.units, before.goal, both)
        changes = changes_of(after.units, after.goal, expected, band)
        if why_not := self._why_not(before, after):
            found = f"{name_of(OPTIMIZED, after.goal)} {percent_text(changes[OPTIMIZED].percent)}"
            return Verdict(kind=VerdictKind.UNGATED, sentence=f"{why_not}: {found}")
        return verdict_of(after, changes, expected, promotable=False)

    def _against_another(self) -> str:
        """That the two runs' baselines are not one: a pair's own, or the optimized side at another revision; "" if they are."""
        typed_a, typed_b = (str(run.settings.get("against") or "") for run in (self.run_a, self.run_b))
        if typed_a and typed_b:
            same = self.run_a.against == self.run_b.against if self.run_a.against and self.run_b.against else typed_a == typed_b
            commits = [
                f"{typed} ({run.against[:10]})" if run.against else typed for typed, run in ((typed_a, self.run_a), (typed_b, self.run_b))
            ]
            return "" if same else f"as A was --against {commits[0]} and B --against {commits[1]}"
        if typed_a or typed_b:
            return f"as {'A' if typed_a else 'B'} was --against {typed_a or typed_b}"
        return ""

    def _why_not(self, before: PairTiming, after: PairTiming) -> str:
        if why_not := self._against_another() or other_conditions(before, after):
            return why_not
        if after.device == "cpu":
            return "timed on a CPU"
        models = [sorted({gpu["name"] for gpu in run.environment.get("gpus", ())}) for run in (self.run_a, self.run_b)]
        return "" if models[0] == models[1] else f"A ran on {', '.join(models[0])} and B on {', '.join(models[1])}"

"""Timings that no gate held to anything, with the reason for each; and why a run that had to gate something exits 5."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from common.python.errors import ExitCode, Status
from common.python.report.rows import counts_text, few
from common.python.results import PairResult, Run, VerdictKind
from common.python.wording import at_shape, one_line

_ON_A_CPU = "the gate needs a GPU, and on a CPU there is pytest's --gpu-expectations"


def ungated(rows: Iterable[PairResult]) -> Iterator[tuple[PairResult, str, str]]:
    """Each timing that was not gated: its row, its named shape, and why."""
    for row in rows:
        for shape in row.timings:
            verdict = row.verdicts.get(shape)
            if verdict is None:
                yield row, shape, row.ungated.get(shape, "it has no verdict")
            elif verdict.kind in (VerdictKind.NEW, VerdictKind.UNGATED):
                yield row, shape, one_line(verdict.sentence.removeprefix("not gated").lstrip(":, "))


def accepted_text(run: Run, rows: Sequence[PairResult]) -> str:
    """How many timings a run that was to accept them accepted, and why not the others; "" of any other run."""
    if not run.settings.get("accept_regressions"):
        return ""
    targets: dict[str, list[str]] = {}
    accepted = 0
    for row in rows:
        for shape in row.timings:
            if shape in row.verdicts and row.verdicts[shape].accepted:
                accepted += 1
                continue
            said = f"@{shape} is not accepted: "
            why = next((note.removeprefix(said) for note in row.notes if note.startswith(said)), "it was not held to be accepted")
            targets.setdefault(one_line(why), []).append(f"{row.target}{at_shape(shape)}")
        if not row.timings:
            why = "it was not timed" if row.status is Status.PASSED else f"it is {row.status}"
            targets.setdefault(why, []).append(row.target)
    reasons = [f"{few(found)}: {why}" for why, found in targets.items()]
    asked = accepted + sum(map(len, targets.values()))
    return f"accepted {accepted} of {asked}{': ' if reasons else ''}{'; '.join(reasons)}"


def exit_reason(code: int | None, rows: Sequence[PairResult]) -> str:
    """Why a run exits 5, in one sentence; "" of another exit code, which its rows explain."""
    if code != ExitCode.NOTHING_MEASURED:
        return ""
    if not any(row.status is Status.PASSED for row in rows):
        return f"no target passed ({counts_text(rows)})"
    targets: dict[str, list[str]] = {}
    for row, shape, why in ungated(rows):
        targets.setdefault(why, []).append(f"{row.target}{at_shape(shape)}")
    for row in rows:
        if row.status is Status.PASSED and not row.timings:
            targets.setdefault("it was not timed", []).append(row.target)
    reasons = [f"{few(found)}: {why}" for why, found in targets.items()]
    on_a_cpu = any(timing.device == "cpu" for row in rows for timing in row.timings.values())
    return f"nothing was gated: {'; '.join([*reasons, *([_ON_A_CPU] if on_a_cpu else [])])}"

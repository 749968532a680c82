"""The exit code that the rows of a run earn."""

from __future__ import annotations

from collections.abc import Iterable

from common.python.errors import ExitCode, Status
from common.python.results import PairResult, StopReason, VerdictKind

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

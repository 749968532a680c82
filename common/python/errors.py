"""The two ways to stop: a bad request ends the run with an exit code, a bad side ends its own row with a status."""

from __future__ import annotations

from enum import IntEnum, StrEnum


class Status(StrEnum):
    """What became of one row."""

    PASSED = "PASSED"
    SKIPPED = "SKIPPED"
    BUILD_FAILED = "BUILD_FAILED"
    LAUNCH_FAILED = "LAUNCH_FAILED"
    WRONG_RESULT = "WRONG_RESULT"
    INPUT_MODIFIED = "INPUT_MODIFIED"
    STREAM_ESCAPE = "STREAM_ESCAPE"
    IMPLAUSIBLE = "IMPLAUSIBLE"
    UNPROVEN = "UNPROVEN"
    TIMEOUT = "TIMEOUT"
    CRASHED = "CRASHED"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"


class ExitCode(IntEnum):
    """What the process tells its caller; `gate.outcome` decides which one a run earns."""

    GOOD = 0
    USAGE = 1
    REGRESSION = 2
    INCONCLUSIVE = 3
    WRONG = 4
    NOTHING_MEASURED = 5
    UNFIT = 6
    BROKEN = 7
    FULL_DISK = 8
    HUNG_UP = 129
    INTERRUPTED = 130
    TERMINATED = 143


class BenchmarkError(Exception):
    """A request that cannot be carried out; its text is one sentence: which file or flag, what was found, what was expected."""

    exit_code = ExitCode.USAGE


class UnfitEnvironment(BenchmarkError):
    """The machine is not fit to measure on now, for example because another run holds it."""

    exit_code = ExitCode.UNFIT


class SideFailure(Exception):
    """One side, or its workload, failed in a way that has a status; it costs its own row and nothing else."""

    def __init__(self, status: Status, reason: str) -> None:
        super().__init__(f"{status}: {reason}")
        self.status = status
        self.reason = reason

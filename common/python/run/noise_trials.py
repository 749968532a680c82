"""Trials of a machine's noise: whole runs, from discovery to verdict, of the pairs in tools/noise."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from common.python.errors import BenchmarkError, ExitCode, Status, UnfitEnvironment
from common.python.gate.noise_floor import NoiseFloor, floors_of, keep_noise, noise_path
from common.python.gate.verdicts import NOISE_COMMAND, first_gpu
from common.python.machine.ceilings import machine_key
from common.python.machine.description import describe_machine
from common.python.pairs.discovery import discover
from common.python.project import PROJECT_ROOT
from common.python.results import PairResult
from common.python.run.interruption import Interrupted
from common.python.run.suite import Watcher, run_suite
from common.python.settings import Settings

NOISE_ROOT = PROJECT_ROOT / "tools" / "noise"
PLANTED = "_slower"
PATIENCE_S = 150.0  # with the round that is under way when it ends: under three minutes


def alike_targets() -> tuple[str, ...]:
    """The pairs whose two sides are the same code."""
    return tuple(pair.target for pair in discover(NOISE_ROOT).pairs if not pair.name.endswith(PLANTED))


def run_trial(settings: Settings, targets: Sequence[str], watcher: Watcher) -> tuple[PairResult, ...]:
    """Run `targets` once, in a temporary folder, and gate them against the expectation that nothing changed.

    Raises BenchmarkError for a row that fails, UnfitEnvironment if the device throttled, and KeyboardInterrupt or Interrupted by a signal.
    """
    with tempfile.TemporaryDirectory() as folder:
        chosen = {"command": NOISE_COMMAND, "root": NOISE_ROOT, "targets": tuple(targets), "artifacts_dir": Path(folder, "trial")}
        outcome = run_suite(settings.model_copy(update=chosen), watcher)
    if outcome.exit_code is ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    if outcome.exit_code in (ExitCode.TERMINATED, ExitCode.HUNG_UP):
        raise Interrupted(outcome.exit_code)
    if outcome.exit_code is ExitCode.UNFIT:
        raise UnfitEnvironment("the device throttled in a trial; expected a machine that is fit to measure on")
    for row in outcome.rows:
        if row.status not in (Status.PASSED, Status.SKIPPED):
            raise BenchmarkError(f"{row.target}: found {row.status}, {row.reason}; expected every trial to pass")
    return outcome.rows


def measure_noise(settings: Settings, rounds: int | None, watcher: Watcher) -> NoiseFloor:
    """Try every pair of the same code in `rounds` rounds, else as often as its patience allows; keep what that shows of this machine."""
    machine = describe_machine(NOISE_ROOT)
    begin, last, done = time.monotonic(), 0.0, 0
    timings = []
    while done < (rounds or 1) or (rounds is None and time.monotonic() + last < begin + PATIENCE_S):
        started = time.monotonic()
        rows = run_trial(settings, alike_targets(), watcher)
        timings += [(row.target, timing) for row in rows for timing in row.timings.values()]
        done, last = done + 1, time.monotonic() - started
    gpu = first_gpu(settings, machine)
    floor = NoiseFloor(
        device=gpu.name if gpu else machine.cpu,
        driver=gpu.driver if gpu else "",
        measured=datetime.now().astimezone().isoformat(timespec="seconds"),
        floors=floors_of(timings),
    )
    keep_noise(noise_path(machine_key(machine, gpu)), floor)
    return floor

"""Makes a run that is slower than a recorded one, to try the gate without a GPU: no measurement, and its own notes say so."""

from __future__ import annotations

from pathlib import Path

from common.python.gate.statistics import gains_of, rungs_of, speedups_of, times_of
from common.python.project import PROJECT_ROOT
from common.python.report.run_folder import METRICS_FILE, RUN_FILE, load
from common.python.results import OPTIMIZED, Metrics, PairResult, PairTiming, Run, Unit
from common.python.storage import document_text, write_whole

RECORDED = PROJECT_ROOT / "tools/pictures/run_h200"
SLOWER = PROJECT_ROOT / "tests/data/run_h200_slower"
TARGET = "ch07:vectorized_copy"
FACTOR = 1.03
NOTE = f"not measured: a copy of tools/pictures/run_h200 with the samples of {TARGET}'s optimized side lengthened by 3 %, to try the gate"


def slower_run() -> tuple[Run, Metrics]:
    """The recorded run with one side slowed down."""
    run, rows = load(RECORDED)
    slowed = tuple(_slowed(row) if row.target == TARGET else row for row in rows)
    return run.model_copy(update={"run_id": f"{run.run_id}_slower", "notes": (NOTE,)}), Metrics(run_id=f"{run.run_id}_slower", rows=slowed)


def _slowed(row: PairResult) -> PairResult:
    timings = {shape: _slowed_timing(timing) for shape, timing in row.timings.items()}
    return row.model_copy(update={"timings": timings, "verdicts": {}, "predictions": {}})


def _slowed_timing(timing: PairTiming) -> PairTiming:
    units = tuple(_slowed_unit(unit) for unit in timing.units)
    times, share = times_of(units), timing.shares[OPTIMIZED]
    figures = {"time_ns": {side: times[side] for side in timing.time_ns}, "speedups": speedups_of(units), "gains": gains_of(units)}
    rungs = rungs_of(units, tuple(units[0].blocks), timing.goal) if timing.rungs else {}
    shares = timing.shares | {OPTIMIZED: share.model_copy(update={"share": share.share / FACTOR, "at_held_clock": None})}
    return timing.model_copy(update={"units": units, "rungs": rungs, "shares": shares} | figures)


def _slowed_unit(unit: Unit) -> Unit:
    blocks = tuple(
        block.model_copy(update={"samples_ns": tuple(round(sample * FACTOR, 3) for sample in block.samples_ns)})
        for block in unit.blocks[OPTIMIZED]
    )
    return unit.model_copy(update={"blocks": {**unit.blocks, OPTIMIZED: blocks}})


def write_slower(folder: Path = SLOWER) -> None:
    """Write the two documents of the slowed run."""
    run, metrics = slower_run()
    write_whole(folder / RUN_FILE, document_text(run))
    write_whole(folder / METRICS_FILE, document_text(metrics))


if __name__ == "__main__":
    write_slower()

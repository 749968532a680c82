"""What a chapter's README shows of its simulated fleets: gains that the simulation predicts, beside the pairs' rows on one GPU.

A record is what `ch17/fleet_simulation.py --shapes --json` writes, committed as fleet_simulated_byte_lm_h200.json.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel

from common.python.gate.expectations import Expectations, key_text, read_expectations
from common.python.wording import significant
from tools.checks.written_tables import NOT_MEASURED, record, rows

MARKER = "fleet"
SCRIPTS = "ch*/fleet_simulation.py"
HEADS = ("pair", "engines", "simulated, a GPU each", "simulated, all on one GPU", "measured, all on one GPU")
TTFT = "ttft_ms.p95"
TWO = 2  # engines, where a pair's shape names no number


class _Row(BaseModel):
    pair: str
    engines: int
    gpus: int
    gain: float
    baseline: dict[str, float]
    optimized: dict[str, float]


class _Record(BaseModel):
    times: str
    source: str
    traces: int
    shapes: dict[str, dict[str, int]]
    rows: tuple[_Row, ...]


def fleets(script: Path) -> str:
    """The tables of all records beside `script`. Raises BenchmarkError, naming the file, for one that is none."""
    measured = [read_expectations(path) for path in sorted(script.parent.glob("expectations_*.json"))]
    parts = []
    for path in sorted(script.parent.glob("fleet_simulated_*.json")):
        kept = record(path, _Record, f"what {script.name} --shapes --json writes")
        table = rows(HEADS, _cells(kept, measured))
        origin = f"`{kept.times}`, {kept.source.partition(':')[0]}; {kept.traces} traces a row"
        parts.append(f"{table}\n\nSimulated with service times {origin}.")
    return "\n\n".join(parts) or f"{NOT_MEASURED[0].upper()}{NOT_MEASURED[1:]}."


def _cells(record: _Record, measured: list[Expectations]) -> Iterator[list[str]]:
    found = {(row.pair, row.engines, row.gpus == row.engines): row for row in record.rows}
    for pair, engines in dict.fromkeys((row.pair, row.engines) for row in record.rows):
        simulated = [_text(found.get((pair, engines, has_own_gpus))) for has_own_gpus in (True, False)]
        yield [f"[{pair}](#{pair})", str(engines), *simulated, _measured(pair, engines, measured)]


def _text(row: _Row | None) -> str:
    if row is None:
        return ""
    before, after = (significant(side[TTFT]) for side in (row.baseline, row.optimized))
    return f"{row.gain:.2f}x: {before} to {after} ms"


def _measured(pair: str, engines: int, measured: list[Expectations]) -> str:
    """The row of that many engines, a GPU model each; empty where the pair's timed shape has another number."""
    found = []
    for models in measured:
        for row in models.pairs.get(pair, {}).values():
            if row.figures and row.shape.get("engines", TWO) == engines:  # of whatever goal
                before, after = (row.figures[side][TTFT].estimate for side in ("baseline", "optimized"))
                found.append(f"{key_text(models.gpu)} {before / after:.2f}x: {significant(before)} to {significant(after)} ms")
    return "; ".join(found)

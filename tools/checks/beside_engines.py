"""What a chapter's README shows of its engine beside another's: a line for each comparison in the records beside the script.

A record is what `ch15/beside_transformers.py --json` writes, committed as beside_transformers_h200.json.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import BaseModel

from common.python.errors import BenchmarkError
from common.python.results import Interval, Origin
from common.python.wording import significant, speedup_text
from tools.checks.written_tables import NOT_MEASURED, record, rows

MARKER = "beside"
SCRIPTS = "ch*/beside_*.py"
HEADS = ("at a time", "theirs", "our throughput over theirs", "tokens/s, ours", "theirs", "equal answers")


class _Engine(BaseModel):
    engine: str
    at_once: int
    settings: dict[str, Any]
    tokens_per_s: float
    wrong_tokens: int


class _Compared(BaseModel):
    ours_at_once: int
    engine: str
    at_once: int
    ratio: float
    low: float
    high: float
    same_answers: float


class _Record(BaseModel):
    hardware: str
    dtype: str
    shape: dict[str, int]
    versions: dict[str, str]
    engines: tuple[_Engine, ...]
    rounds: tuple[dict[str, Any], ...]
    compared: tuple[_Compared, ...]
    origin: Origin

    def tokens_per_s(self, engine: str, at_once: int) -> str:
        return next(significant(each.tokens_per_s) for each in self.engines if (each.engine, each.at_once) == (engine, at_once))


def beside(script: Path) -> str:
    """The tables of all records beside `script`. Raises BenchmarkError, naming the file, for one that is none or that has wrong tokens."""
    parts = []
    for path in sorted(script.parent.glob(f"{script.stem}_*.json")):
        kept = record(path, _Record, f"what {script.name} --json writes")
        if wrong := sum(each.wrong_tokens for each in kept.engines):
            raise BenchmarkError(f"{path}: found {wrong} wrong tokens; expected none")
        parts.append(_text(kept))
    return "\n\n".join(parts) or f"{NOT_MEASURED[0].upper()}{NOT_MEASURED[1:]}."


def _text(record: _Record) -> str:
    def cells(each: _Compared) -> list[str]:
        ratio = speedup_text(Interval(estimate=each.ratio, low=each.low, high=each.high))
        throughput = record.tokens_per_s("ours", each.ours_at_once), record.tokens_per_s(each.engine, each.at_once)
        return [str(each.ours_at_once), f"{each.engine}, {each.at_once}", ratio, *throughput, f"{100 * each.same_answers:.0f} %"]

    return f"{rows(HEADS, map(cells, record.compared))}\n\nMeasured with {_where(record)}."


def _where(record: _Record) -> str:
    origin, versions = record.origin, [f"{name} {version}" for name, version in record.versions.items()]
    commit = f"commit {origin.commit[:10] or 'unknown'}{' with changes' if origin.dirty else ''}"
    told = [record.hardware, f"driver {origin.driver or 'unknown'}", *versions, record.dtype, f"{len(record.rounds)} traces"]
    return ", ".join([*told, commit, origin.date[:10] or "no date"])

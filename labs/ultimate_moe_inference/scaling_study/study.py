"""What the scripts of the scaling study share: a point is one run of the lab's ladder at one shape, kept in a folder of its own."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from common.python.machine.description import describe_machine

ROOT = Path(__file__).resolve().parents[3]
TARGET = "labs/ultimate_moe_inference:ultimate_inference"
BENCHMARK = [sys.executable, str(ROOT / "tools/cli/benchmark_cli.py")]
MODELS = {"20b": {}, "120b": {"experts": 128}}
"""By name, what a layer of gpt-oss has other than the timed shape's: a layer of the 120b has 128 experts instead of 32."""
COLORS = ("#369", "#a33", "#383", "#84a", "#b70", "#077", "#555")


class Unmeasured(Exception):
    """A point that has no times: why, in one sentence."""


def positive(text: str) -> int:
    """A flag's whole number, at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"found {text!r}; expected a whole number of at least 1")
    return int(text)


def command_of(folder: Path, shape: Mapping[str, int], more: Sequence[str] = ()) -> list[str]:
    """The run of a point; what an earlier one finished is kept."""
    changed = ["--kwargs", " ".join(f"{name}={value}" for name, value in shape.items())] if shape else []
    return [*BENCHMARK, "run", "--targets", TARGET, *changed, "--artifacts-dir", str(folder), "--resume", *more]


def row_in(folder: Path) -> dict[str, Any] | None:
    """The row that a run left in `folder`; None if there is none yet. Raises Unmeasured for a file that is no result."""
    file = folder / "metrics.json"
    if not file.exists():
        return None
    try:
        rows = json.loads(file.read_text())["rows"]
    except (ValueError, KeyError, TypeError):
        raise Unmeasured(f"{file}: found no result document; expected one that benchmark_cli wrote") from None
    return next((row for row in rows if row["target"] == TARGET), None)


def timing_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """The one timing of a row. Raises Unmeasured if it has none, as on a machine without the GPU that it needs."""
    if not row["timings"]:
        raise Unmeasured(f"{row['target']}: {row['status']}, {row['reason'] or 'checked here and not timed; expected a GPU'}")
    timing: dict[str, Any] = next(iter(row["timings"].values()))
    return timing


def times_of(row: Mapping[str, Any]) -> dict[str, float]:
    """Microseconds a step, by side, in the ladder's order."""
    return {side: interval["estimate"] / 1e3 for side, interval in timing_of(row)["time_ns"].items()}


def run(command: Sequence[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
    """What a command came to. Raises Unmeasured without a GPU: minutes of checks, and no time."""
    if not describe_machine(ROOT).gpus:
        raise Unmeasured("found no GPU; expected one: without it a run checks and times nothing")
    return subprocess.run(command, cwd=ROOT, check=False, **options)


def measured(folder: Path, shape: Mapping[str, int], run: Callable[..., Any] = run) -> dict[str, Any]:
    """The row of a point, from `folder` if an earlier study measured it, else measured now. Raises Unmeasured."""
    row = row_in(folder)
    if row is None:
        run(command_of(folder, shape), stdout=sys.stderr)
        row = row_in(folder)
    if row is None:
        raise Unmeasured(f"{folder}: the run left no row of {TARGET}; its output above says why")
    try:
        timing_of(row)
    except Unmeasured as reason:
        raise Unmeasured(f"{reason}; remove {folder} to measure it again") from None
    return row


def sweep(folder: Path, batches: Sequence[int], model: str) -> dict[int, dict[str, Any]]:
    """A row for each number of sequences, measured one after the other, with progress on stderr. Raises Unmeasured."""
    rows = {}
    for number, batch in enumerate(batches, start=1):
        print(f"{number} of {len(batches)}: gpt-oss-{model}, sequences = {batch}", file=sys.stderr, flush=True)
        rows[batch] = measured(folder / f"{model}_sequences_{batch}", {**MODELS[model], "sequences": batch})
    return rows


def tokens_per_second(batch: int, microseconds: float) -> float:
    """Tokens a second of a step that decodes one token for each of `batch` sequences."""
    return batch / microseconds * 1e6


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Markdown of a table."""
    return "\n".join("| " + " | ".join(cells) + " |" for cells in (head, ["---"] * len(head), *rows)) + "\n"


def drawn(title: str, across: Sequence[object], lines: Mapping[str, Sequence[float]]) -> str:
    """SVG of a line for each name over the points of `across`, from 0."""
    width, height, left, top = 760, 340, 80, 50
    most = max(max(values) for values in lines.values())

    def x(at: int) -> float:
        return left + at * (width - left - 40) / max(1, len(across) - 1)

    parts = [f'<text x="{left}" y="24" font-weight="bold">{escape(title)}</text>']
    for tick in range(5):
        y = top + height * (1 - tick / 4)
        parts.append(f'<line x1="{left}" x2="{width - 30}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 8}" y="{y + 5:.1f}" text-anchor="end">{most * tick / 4:.4g}</text>')
    parts += [f'<text x="{x(at):.1f}" y="{top + height + 22}" text-anchor="middle">{name}</text>' for at, name in enumerate(across)]
    for number, (name, values) in enumerate(lines.items()):
        color, y = COLORS[number % len(COLORS)], top + height + 48 + 20 * number
        points = " ".join(f"{x(at):.1f},{top + height * (1 - value / most):.1f}" for at, value in enumerate(values))
        parts.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts.append(
            f'<rect x="{left}" y="{y - 10}" width="24" height="4" fill="{color}"/><text x="{left + 32}" y="{y}">{escape(name)}</text>'
        )
    return _svg(width, top + height + 60 + 20 * len(lines), parts)


def bars(title: str, rows: Mapping[str, Mapping[str, float]], ends: Mapping[str, str]) -> str:
    """SVG of a bar for each name of `rows`, of its parts one after the other; what `ends` has for the name stands behind the bar."""
    width, left, top, high = 760, 170, 50, 30
    parts = list(dict.fromkeys(part for amounts in rows.values() for part in amounts))
    colors = {part: "#ccc" if part == "idle" else COLORS[at % len(COLORS)] for at, part in enumerate(parts)}
    scale = (width - left - 110) / max(sum(amounts.values()) for amounts in rows.values())
    shapes = [f'<text x="20" y="24" font-weight="bold">{escape(title)}</text>']
    for y, (name, amounts) in zip(range(top, top + high * len(rows), high), rows.items(), strict=True):
        x = float(left)
        shapes.append(f'<text x="{left - 8}" y="{y + 15}" text-anchor="end">{escape(name)}</text>')
        for part, amount in amounts.items():
            shapes.append(f'<rect x="{x:.1f}" y="{y}" width="{amount * scale:.1f}" height="20" fill="{colors[part]}"/>')
            x += amount * scale
        shapes.append(f'<text x="{x + 8:.1f}" y="{y + 15}">{escape(ends[name])}</text>')
    below = top + high * len(rows) + 20
    keys = parts if len(parts) > 1 else []
    for y, part in zip(range(below, below + 20 * len(keys), 20), keys, strict=True):
        shapes.append(f'<rect x="{left}" y="{y - 11}" width="14" height="14" fill="{colors[part]}"/>')
        shapes.append(f'<text x="{left + 22}" y="{y + 1}">{escape(part)}</text>')
    return _svg(width, below + 20 * len(keys), shapes)


def _svg(width: int, height: int, parts: Sequence[str]) -> str:
    box = f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="14"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {box}><rect width="100%" height="100%" fill="white"/>{"".join(parts)}</svg>\n'


def flags(description: str) -> argparse.ArgumentParser:
    """A parser with the flags of every sweep."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--batch-sizes", type=positive, nargs="+", default=[1, 2, 4, 8, 16, 32], help="sequences that decode together")
    parser.add_argument("--model", choices=MODELS, default="20b", help="whose layers: 120b has 128 experts a layer (default: 20b)")
    parser.add_argument("--folder", type=Path, default=ROOT / "artifacts/scaling_study", help="runs and drawings; points there are kept")
    return parser

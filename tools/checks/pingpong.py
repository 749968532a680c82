"""What a chapter's README shows of a traced demo of two warpgroups: a picture of some steps and a table, for each file it wrote."""

from __future__ import annotations

from html import escape
from pathlib import Path

from common.python.report.pingpong_trace import PingPongTrace, lines, read_pingpong_trace, sentences
from tools.checks.written_tables import NOT_MEASURED, rows

DEMOS = "ch*/*_pingpong_trace.cu"

_COLOURS = {
    "wait for turn": "#e4e4e4",
    "issue scores": "#0b62a4",
    "wait for values": "#c8c8c8",
    "issue values": "#5a9bd0",
    "wait for scores": "#8fc1e6",
    "softmax": "#d9822b",
    "wait for keys": "#c8c8c8",
    "wait for sums": "#a9d39e",
    "round": "#3d7d2f",
}
_LEFT, _WIDE, _TOP, _HIGH, _GAP, _KEY = 96, 760, 64, 40, 14, 150  # pixels: of the lanes, and of an entry of the key


def pingpong(demo: Path) -> tuple[str, dict[Path, str]]:
    """What the README says of all files `<demo>_*.json` beside `demo`, and their pictures by path. Raises BenchmarkError, naming one."""
    head = f"What the warpgroups did, by [{demo.name}]({demo.name})"
    texts, pictures = [], {}
    for path in sorted(demo.parent.glob(f"{demo.stem}_*.json")):
        trace = read_pingpong_trace(path)
        picture = path.with_suffix(".svg")
        pictures[picture] = drawn(trace)
        image = f"![Phases of two warpgroups over some steps]({picture.name})"
        table = rows(("phase", "share of the time"), lines(trace))
        texts.append("\n\n".join([f"{head}, {trace.where}:", image, table, " ".join(sentences(trace))]))
    return "\n\n".join(texts) or f"{head}: {NOT_MEASURED}.", pictures


def drawn(trace: PingPongTrace) -> str:
    """The phases that were kept as SVG: a lane for each warpgroup, over the time in µs."""
    last = max(event.ts + event.dur for event in trace.events)
    scale, bottom, width = _WIDE / (last or 1), _TOP + 2 * _HIGH + _GAP, _LEFT + _WIDE + 16
    title = f"Steps of two warpgroups of a block, {trace.gpu}"
    parts = [f'<text x="8" y="20" font-size="14" font-weight="bold">{escape(title)}</text>']
    shown = [name for name in _COLOURS if any(event.name == name and event.dur for event in trace.events)]
    per_row = -(-len(shown) // 2)
    for number, name in enumerate(shown):
        x, y = _LEFT + number % per_row * _KEY, 28 + number // per_row * 16
        parts.append(f'<rect x="{x}" y="{y}" width="10" height="10" fill="{_COLOURS[name]}"/>')
        parts.append(f'<text x="{x + 14}" y="{y + 9}">{escape(name)}</text>')
    for warpgroup in (0, 1):
        y = _TOP + warpgroup * (_HIGH + _GAP)
        parts.append(f'<text x="{_LEFT - 8}" y="{y + _HIGH / 2 + 4:g}" text-anchor="end">warpgroup {warpgroup}</text>')
    for event in trace.events:
        if event.name in _COLOURS and event.dur:
            top = _TOP + event.tid * (_HIGH + _GAP)
            box = f'x="{_LEFT + scale * event.ts:.1f}" y="{top}" width="{scale * event.dur:.1f}" height="{_HIGH}"'
            parts.append(f'<rect {box} fill="{_COLOURS[event.name]}"><title>{escape(event.name)}: {event.dur:g} µs</title></rect>')
    for tick in range(int(last) + 1):
        at = _LEFT + scale * tick
        parts.append(f'<path d="M{at:.1f} {bottom}v5" stroke="#888"/>')
        parts.append(f'<text x="{at:.1f}" y="{bottom + 18}" text-anchor="middle">{tick}</text>')
    parts.append(f'<text x="{_LEFT + _WIDE / 2:g}" y="{bottom + 36}" text-anchor="middle">time in µs</text>')
    view = f'viewBox="0 0 {width} {bottom + 44}"'
    start = f'<svg xmlns="http://www.w3.org/2000/svg" {view} font-family="sans-serif" font-size="12" fill="#222">'
    return "\n".join([start, '<rect width="100%" height="100%" fill="white"/>', *parts, "</svg>"]) + "\n"

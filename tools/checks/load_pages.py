"""What RESULTS.md shows of a pair's requests by load: a picture of latency and goodput, and a table with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from common.python.gate.expectations import key_text
from common.python.report.charts import Axis, powers, round_values
from common.python.results import Interval
from common.python.wording import figure_interval_text, significant
from tools.checks.written_tables import rows
from tools.loadgen.keep_loads import GOODPUT, ITL_TAIL, TTFT, TTFT_TAIL, LoadSweep, ServedLoad, read_loads

HEADS = ("load", "side", "offered/s", "TTFT p50 ms", "TTFT p95 ms", "TPOT p50 ms", "ITL p95 ms", "tokens/s", "requests/s", "goodput")
_COLUMNS = (TTFT, TTFT_TAIL, "tpot_ms.p50", ITL_TAIL, "output_tokens_per_s", "requests_per_s", GOODPUT)
_PANELS = {TTFT: "TTFT p50, ms", TTFT_TAIL: "TTFT p95, ms", ITL_TAIL: "ITL p95, ms", GOODPUT: "goodput"}
_COLOURS = ("#b5460f", "#0b62a4", "#3d7d2f", "#7a3fa0")
_WIDE, _HIGH, _LEFT, _TOP, _GAP = 190, 220, 52, 66, 66  # pixels: a panel, and what stands around it
_COMMIT = 10


def load_records(folder: Path) -> dict[str, dict[str, LoadSweep]]:
    """By pair and by key of a GPU model the records in `folder`. Raises BenchmarkError, naming the file that is none."""
    found: dict[str, dict[str, LoadSweep]] = {}
    for path in sorted(folder.glob("loads_*.json")):
        loads = read_loads(path)
        for name, sweep in loads.pairs.items():
            found.setdefault(name, {})[loads.gpu] = sweep
    return found


def picture_name(pair: str, key: str) -> str:
    """The file of a record's picture, beside the record."""
    return f"loads_{pair}_{key}.svg"


def load_pictures(folder: Path) -> dict[Path, str]:
    """The pictures of all records in `folder` that have several loads, by path."""
    return {
        folder / picture_name(pair, key): load_picture(f"{pair}, {key_text(key)}", sweep)
        for pair, sweeps in load_records(folder).items()
        for key, sweep in sweeps.items()
        if len(sweep.loads) > 1
    }


def load_section(pair: str, key: str, sweep: LoadSweep) -> str:
    """The paragraph, the picture, the table and where it was measured."""
    entries = ", ".join(f"{name} = {value}" for name, value in sweep.shape.items())
    saturations = dict.fromkeys(significant(each.saturation_per_s) for each in sweep.loads)
    level = f"{sweep.slo_ttft_ms:g} ms to the first token and {sweep.slo_tpot_ms:g} ms for each token after it"
    told = f"Load is a share of the baseline's closed-loop throughput, {' and '.join(saturations)} requests/s."
    parts = [f"**{key_text(key)}, by load**: {entries}. {told} Goodput is the share of requests within {level}."]
    if len(sweep.loads) > 1:
        parts.append(f"![Latency and goodput by load, both sides]({picture_name(pair, key)})")
    return "\n\n".join([*parts, rows(HEADS, _cells(sweep)), "\n".join(_provenances(sweep))])


def _cells(sweep: LoadSweep) -> Iterator[list[str]]:
    for each in sweep.loads:
        for side, figures in each.sides.items():
            told = (_text(name, figures[name]) if name in figures else "" for name in _COLUMNS)
            yield [f"{each.load:g}", side, significant(each.offered_per_s), *told]


def _text(name: str, figure: Interval) -> str:
    return figure_interval_text(_shown(name, figure), "%" if name == GOODPUT else "")


def _shown(name: str, figure: Interval) -> Interval:
    """A share in percent, its interval within what a share can be; others as they are."""
    if name != GOODPUT:
        return figure
    low, at, high = (100 * min(1.0, max(0.0, value)) for value in (figure.low, figure.estimate, figure.high))
    return Interval(estimate=at, low=low, high=high)


def _provenances(sweep: LoadSweep) -> Iterator[str]:
    counts = sorted({each.process_pairs for each in sweep.loads})
    pairs = f"{counts[0]} to {counts[-1]} process pairs a load" if counts[1:] else f"{counts[0]} process pairs a load"
    told = []
    for origin in sweep.origins:
        versions = [f"{name} {version}" for name, version in (("driver", origin.driver), ("torch", origin.torch)) if version]
        commit = f"commit {origin.commit[:_COMMIT] or 'unknown'}{' with changes' if origin.dirty else ''}"
        told.append(", ".join([origin.gpus[0].rpartition(" ")[0], *versions, commit, *([origin.date[:10]] if origin.date else []), pairs]))
    yield from (f"- Measured with {each}" for each in dict.fromkeys(told))


def load_picture(title: str, sweep: LoadSweep) -> str:
    """A panel a figure over the load, a line a side, with intervals; latencies on logarithmic axes."""
    sides = list(dict.fromkeys(side for each in sweep.loads for side in each.sides))
    panels = [name for name in _PANELS if all(name in each.sides[side] for each in sweep.loads for side in each.sides)]
    width, bottom = len(panels) * (_WIDE + _GAP) + 8, _TOP + _HIGH
    parts = [f'<text x="8" y="22" font-size="14" font-weight="bold">{escape(title)}: requests by load</text>']
    for number, side in enumerate(sides):
        x = 8 + 140 * number
        parts.append(f'<path d="M{x} 38h24" stroke="{_COLOURS[number % len(_COLOURS)]}" stroke-width="2"/>')
        parts.append(f'<text x="{x + 30}" y="42">{escape(side)}</text>')
    for number, name in enumerate(panels):
        parts += _panel(name, sweep.loads, sides, _LEFT + number * (_WIDE + _GAP))
    end = f'<text x="{width / 2:g}" y="{bottom + 40}" text-anchor="middle">load, as a share of saturation; bars: 95 % intervals</text>'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom + 52}" font-family="sans-serif" font-size="12" fill="#222">'
    )
    return "\n".join([head, '<rect width="100%" height="100%" fill="white"/>', *parts, end, "</svg>"]) + "\n"


def _panel(name: str, loads: Sequence[ServedLoad], sides: Sequence[str], left: int) -> Iterator[str]:
    x, y = Axis(0.0, 1.1 * loads[-1].load, is_log=False), _axis(name, loads)
    right, bottom = left + _WIDE, _TOP + _HIGH
    yield f'<text x="{left}" y="{_TOP - 8}">{_PANELS[name]}</text>'
    for tick in powers(y.low, y.high) if y.is_log else round_values(y.low, y.high):
        at = _down(y, tick)
        yield f'<path d="M{left} {at}H{right}" stroke="#ccc" stroke-width="0.5"/>'
        yield f'<text x="{left - 6}" y="{at + 4}" text-anchor="end">{tick:.10g}{" %" if name == GOODPUT else ""}</text>'
    yield f'<rect x="{left}" y="{_TOP}" width="{_WIDE}" height="{_HIGH}" fill="none" stroke="#888"/>'
    for each in loads:
        yield f'<text x="{_across(x, each.load, left)}" y="{bottom + 16}" text-anchor="middle">{each.load:g}</text>'
    for number, side in enumerate(sides):
        colour, apart = _COLOURS[number % len(_COLOURS)], 2 * number - len(sides) + 1  # or one bar would hide another
        seen = [(_across(x, each.load, left) + apart, _shown(name, each.sides[side][name])) for each in loads if side in each.sides]
        points = " ".join(f"{at:.1f},{_down(y, figure.estimate)}" for at, figure in seen)
        yield f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
        for at, figure in seen:
            told = f"{side}: {figure_interval_text(figure, '%' if name == GOODPUT else 'ms')}"
            yield f'<path d="M{at:.1f} {_down(y, figure.low)}V{_down(y, figure.high)}" stroke="{colour}"/>'
            yield f'<circle cx="{at:.1f}" cy="{_down(y, figure.estimate)}" r="3" fill="{colour}"><title>{escape(told)}</title></circle>'


def _axis(name: str, loads: Sequence[ServedLoad]) -> Axis:
    if name == GOODPUT:
        return Axis(0.0, 100.0, is_log=False)
    figures = [own[name] for each in loads for own in each.sides.values()]
    low = min(figure.low if figure.low > 0 else figure.estimate for figure in figures)
    return Axis(low / 1.2, max(figure.high for figure in figures) * 1.2, is_log=True)


def _across(axis: Axis, load: float, left: int) -> float:
    return round(left + _WIDE * axis.at(load) / 100, 1)


def _down(axis: Axis, value: float) -> float:
    return round(_TOP + _HIGH * axis.from_top(value) / 100, 1)

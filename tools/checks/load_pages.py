"""What RESULTS.md shows of a pair's requests by load: a picture of latency and goodput, and a table with intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from common.python.gate.expectations import key_text
from common.python.report.charts import Axis
from common.python.results import Interval
from common.python.wording import figure_interval_text, significant
from tools.campaign.sweeps import GOODPUT, ITL_TAIL, TTFT, TTFT_TAIL, Loads, LoadSweep, Record, ServedLoad, kept_in
from tools.checks.swept_pictures import Across, Mark, Panel, picture
from tools.checks.written_tables import rows

HEADS = ("load", "side", "offered/s", "TTFT p50 ms", "TTFT p95 ms", "TPOT p50 ms", "ITL p95 ms", "tokens/s", "requests/s", "goodput")
_COLUMNS = (TTFT, TTFT_TAIL, "tpot_ms.p50", ITL_TAIL, "output_tokens_per_s", "requests_per_s", GOODPUT)
_PANELS = {TTFT: "TTFT p50, ms", TTFT_TAIL: "TTFT p95, ms", ITL_TAIL: "ITL p95, ms", GOODPUT: "goodput"}
_COMMIT = 10


def load_records(folder: Path) -> dict[str, dict[str, LoadSweep]]:
    """By pair and by key of a GPU model the records in `folder`. Raises BenchmarkError, naming the file that is none."""
    found: dict[str, dict[str, LoadSweep]] = {}
    for loads in kept_in(folder, Loads):
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
    return "\n\n".join([*parts, rows(HEADS, _cells(sweep)), provenances(sweep, [each.process_pairs for each in sweep.loads], "load")])


def _cells(sweep: LoadSweep) -> Iterator[list[str]]:
    for each in sweep.loads:
        for side, figures in each.sides.items():
            told = (figure_cell(figures, name) for name in _COLUMNS)
            yield [f"{each.load:g}", side, significant(each.offered_per_s), *told]


def figure_cell(figures: Mapping[str, Interval], name: str) -> str:
    """A figure of served requests with its interval, goodput in percent; "" where it is none of `figures`."""
    return figure_interval_text(_shown(name, figures[name]), "%" if name == GOODPUT else "") if name in figures else ""


def _shown(name: str, figure: Interval) -> Interval:
    """A share in percent, its interval within what a share can be; others as they are."""
    if name != GOODPUT:
        return figure
    low, at, high = (100 * min(1.0, max(0.0, value)) for value in (figure.low, figure.estimate, figure.high))
    return Interval(estimate=at, low=low, high=high)


def provenances(sweep: Record, process_pairs: Sequence[int], each: str) -> str:
    """A line for each run that the sweep was measured in: GPU, versions, commit, date, and how many process pairs `each` value has."""
    counts = sorted(set(process_pairs))
    pairs = f"{counts[0]} to {counts[-1]} process pairs a {each}" if counts[1:] else f"{counts[0]} process pairs a {each}"
    told = []
    for origin in sweep.origins:
        versions = [f"{name} {version}" for name, version in (("driver", origin.driver), ("torch", origin.torch)) if version]
        commit = f"commit {origin.commit[:_COMMIT] or 'unknown'}{' with changes' if origin.dirty else ''}"
        told.append(", ".join([sweep.gpu, *versions, commit, *([origin.date[:10]] if origin.date else []), pairs]))
    return "\n".join(f"- Measured with {line}" for line in dict.fromkeys(told))


def load_picture(title: str, sweep: LoadSweep) -> str:
    """A panel a figure over the load, a line a side, with intervals; latencies on logarithmic axes."""
    sides = list(dict.fromkeys(side for each in sweep.loads for side in each.sides))
    names = [name for name in _PANELS if all(name in each.sides[side] for each in sweep.loads for side in each.sides)]
    ticks = [(each.load, f"{each.load:g}") for each in sweep.loads]
    across = Across(Axis(0.0, 1.1 * sweep.loads[-1].load, is_log=False), ticks, "load, as a share of saturation")
    return picture(f"{title}: requests by load", across, sides, [_panel(name, sweep.loads, sides) for name in names])


def _panel(name: str, loads: Sequence[ServedLoad], sides: Sequence[str]) -> Panel:
    def mark(each: ServedLoad, side: str) -> Mark:
        shown = _shown(name, each.sides[side][name])
        return Mark(each.load, shown, f"{side}: {figure_interval_text(shown, '%' if name == GOODPUT else 'ms')}")

    lines = {side: [mark(each, side) for each in loads if side in each.sides] for side in sides}
    return Panel(_PANELS[name], _axis(name, loads), " %" if name == GOODPUT else "", lines)


def _axis(name: str, loads: Sequence[ServedLoad]) -> Axis:
    if name == GOODPUT:
        return Axis(0.0, 100.0, is_log=False)
    figures = [own[name] for each in loads for own in each.sides.values()]
    low = min(figure.low if figure.low > 0 else figure.estimate for figure in figures)
    return Axis(low / 1.2, max(figure.high for figure in figures) * 1.2, is_log=True)

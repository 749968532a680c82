"""What RESULTS.md shows of a pair's times over an entry of its shape: a picture of times and gains, and a table with intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from common.python.gate.expectations import key_text
from common.python.pairs.goals import TIME
from common.python.pairs.predictions import Constant, Prediction, card_for, is_model, names_in, predictions_of, timed_shapes
from common.python.report.charts import Axis, speedup_axis
from common.python.results import BASELINE, Interval
from common.python.wording import DIGITS, figure_interval_text, interval_text, ratio_text, significant, speedup_text, time_text
from tools.campaign.sweeps import Sweeps, SweptSide, SweptValue, TimeSweep, kept_in
from tools.checks.cards import scaled
from tools.checks.load_pages import provenances
from tools.checks.measured_pairs import MeasuredPair
from tools.checks.short_tables import share_text
from tools.checks.swept_pictures import Across, Mark, Panel, picture
from tools.checks.written_tables import rows

COUNTED = ("tokens", "sequences", "samples", "records", "requests")
"""Entries that count what a step takes in: of those a table has how many go through per second."""

_LOG_FROM = 8  # an axis whose values differ by this factor is logarithmic
_ROOM = 1.2
_UNITS = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))


def sweep_records(folder: Path) -> dict[str, list[TimeSweep]]:
    """By pair the records in `folder`. Raises BenchmarkError, naming the file that is none."""
    found: dict[str, list[TimeSweep]] = {}
    for sweeps in kept_in(folder, Sweeps):
        for name, by_entry in sweeps.pairs.items():
            found.setdefault(name, []).extend(by_entry.values())
    return found


def picture_name(pair: str, sweep: TimeSweep) -> str:
    """The file of a record's picture, beside the record."""
    return f"sweep_{pair}_{sweep.entry}_{sweep.key}.svg"


def sweep_pictures(folder: Path) -> dict[Path, str]:
    """The pictures of all records in `folder` that have several values, by path."""
    return {
        folder / picture_name(pair, sweep): sweep_picture(f"{pair}, {key_text(sweep.key)}", sweep)
        for pair, sweeps in sweep_records(folder).items()
        for sweep in sweeps
        if len(sweep.values) > 1
    }


def sweep_section(measured: MeasuredPair, sweep: TimeSweep) -> str:
    """The paragraph, the picture, the table and where it was measured."""
    entry, entries = sweep.entry, ", ".join(f"{name} = {value}" for name, value in sweep.shape.items())
    told = [f"**{key_text(sweep.key)}, by `{entry}`**: {entries}; clock `{sweep.clock}`, caches {sweep.cache}, mode {sweep.mode}."]
    if len(sweep.values) > 1 and len({side for each in sweep.values for side in each.sides}) == 2:
        told.append(f"The largest speedup measured is at {entry} = {max(sweep.values, key=_speedup).value}.")
    if sweep.hidden:
        told.append(f"**hidden** is the time saved over the baseline, as a share of `{sweep.hidden}`{_constants_told(sweep)}.")
    if entry in COUNTED:
        told.append(f"**{entry} per s** is `{entry}` divided by the time.")
    columns = {name: cell for name, cell in _columns(measured, sweep).items() if any(cell(*at) for at in _lines(sweep))}
    if "predicted" in columns:
        told.append("**predicted** is the pair's equation at that value.")
    parts = [" ".join(told)]
    if len(sweep.values) > 1:
        parts.append(f"![Time and speedup by {entry}]({picture_name(measured.pair.name, sweep)})")
    body = ([str(each.value), side, *(cell(each, side) for cell in columns.values())] for each, side in _lines(sweep))
    counts = [each.process_pairs for each in sweep.values]
    return "\n\n".join([*parts, rows((entry, "side", *columns), body), provenances(sweep, counts, "value")])


def _constants_told(sweep: TimeSweep) -> str:
    """Which constants what is hidden is calculated with: those of the machine of the sweep, or the card's; "" where it names none."""
    found: dict[str, dict[str, None]] = {}
    for each in sweep.values:
        for name, own in each.own.items():
            found.setdefault(name, {})[" ".join(scaled(Constant(own.value, own.unit, "measured", name)))] = None
    told = " and ".join(f"`{name}` = {' or '.join(texts)}" for name, texts in found.items())
    if told:
        return f", where {told} on that machine"
    card = card_for(sweep.gpu)
    return ", with the constants of the model's card, of another GPU" if card and names_in(sweep.hidden) & card.constants.keys() else ""


def _lines(sweep: TimeSweep) -> Iterator[tuple[SweptValue, str]]:
    return ((each, side) for each in sweep.values for side in each.sides)


def _speedup(each: SweptValue) -> float:
    return max(own.speedup.estimate if own.speedup else 0.0 for own in each.sides.values())


def _columns(measured: MeasuredPair, sweep: TimeSweep) -> dict[str, Callable[[SweptValue, str], str]]:
    """By name what a table has behind the value and the side; a column without a word is left out."""
    predicted = predicted_ns(measured, sweep)

    def of_side(said: Callable[[SweptSide], str]) -> Callable[[SweptValue, str], str]:
        return lambda each, side: said(each.sides[side])

    def rate(each: SweptValue, side: str) -> str:
        number = _number(each.value) if sweep.entry in COUNTED else None
        return significant(float(f"{1e9 * number / each.sides[side].time_ns.estimate:.{DIGITS}g}")) if number else ""

    def hidden(each: SweptValue, side: str) -> str:
        share = sweep.hidden_share(each, side)
        return figure_interval_text(_percent(share), "%") if share else ""

    def prediction(each: SweptValue, side: str) -> str:
        own, baseline = (predicted.get((each.value, which)) for which in (side, BASELINE))
        gain = f", {ratio_text(baseline / own)}" if own and baseline and side != BASELINE else ""
        return f"{time_text(own)}{gain}" if own else ""

    return {
        "time": of_side(lambda own: interval_text(own.time_ns)),
        "speedup": of_side(lambda own: speedup_text(own.speedup) if own.speedup else ""),
        **(
            {}
            if sweep.goal == TIME
            else {
                f"{sweep.goal} (goal)": of_side(lambda own: figure_interval_text(own.figure, sweep.unit) if own.figure else ""),
                "gain": of_side(lambda own: speedup_text(own.gain) if own.gain else ""),
            }
        ),
        f"{sweep.entry} per s": rate,
        "hidden": hidden,
        "share of ceiling": of_side(lambda own: f"{share_text(own.share)} of `{own.share.key}`" if own.share else ""),
        "predicted": prediction,
    }


def predicted_ns(measured: MeasuredPair, sweep: TimeSweep) -> dict[tuple[object, str], float]:
    """By value and side the predicted time: of equations alone that name the swept entry, on a model that they are of.

    None of a sweep at another shape than the first timed one: numbers in equations are that one's.
    """
    timed = next(iter(timed_shapes(measured.pair.workload).values()), {})
    if any(timed.get(name, value) != value for name, value in sweep.shape.items()):
        return {}
    lines, _ = predictions_of(measured.pair.workload, measured.pair.sides)
    card = card_for(sweep.gpu)
    return {
        (each.value, line.side): 1e9 * line.value_at(sweep.shape_at(each.value), card)
        for line in lines
        if _follows(line, sweep) and (card or not line.names - sweep.shape_at(0).keys())
        for each in sweep.values
    }


def _follows(line: Prediction, sweep: TimeSweep) -> bool:
    """Whether a line is an equation of a time at the first shape, with the swept entry in it, on the model of the sweep."""
    is_of_time = line.figure == TIME and not line.is_counter and not line.shape
    model = line.model_for(sweep.shape_at(0))
    return is_of_time and sweep.entry in line.names and (not model or is_model(sweep.gpu, model))


def _number(value: object) -> float | None:
    """A number above 0, of which an axis may be logarithmic; None for what is none."""
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and value > 0 else None


def _percent(share: Interval) -> Interval:
    low, at, high = (100 * value for value in (share.low, share.estimate, share.high))
    return Interval(estimate=at, low=low, high=high)


def sweep_picture(title: str, sweep: TimeSweep) -> str:
    """Times and speedups over the swept entry, and what is hidden; axes of values that differ by a factor of 8 or more are logarithmic."""
    sides = list(dict.fromkeys(side for _, side in _lines(sweep)))
    numbers = [number for each in sweep.values if (number := _number(each.value))]
    places = numbers if len(numbers) == len(sweep.values) else [float(index) for index in range(1, len(sweep.values) + 1)]
    is_log = places is numbers and max(places) / min(places) >= _LOG_FROM
    room = (max(places) / min(places)) ** 0.08 if is_log else 0.08 * (max(places) - min(places))
    x = Axis(min(places) / room, max(places) * room, True) if is_log else Axis(min(places) - room, max(places) + room, False)
    at = dict(zip((str(each.value) for each in sweep.values), places, strict=True))
    across = Across(x, [(place, value) for value, place in at.items()], sweep.entry)

    def lines(figure: Callable[[SweptValue, str], Interval | None], words: Callable[[Interval], str]) -> Mapping[str, Sequence[Mark]]:
        found: dict[str, list[Mark]] = {}
        for each, side in _lines(sweep):
            if own := figure(each, side):
                found.setdefault(side, []).append(Mark(at[str(each.value)], own, f"{side}, {sweep.entry} = {each.value}: {words(own)}"))
        return found

    longest = max(each.sides[side].time_ns.estimate for each, side in _lines(sweep))
    size, unit = next(known for known in _UNITS if longest >= known[0] or known[0] == 1.0)
    panels = [
        _panel(
            f"time, {unit}",
            "",
            lines(lambda each, side: _scaled(each.sides[side].time_ns, size), lambda own: figure_interval_text(own, unit)),
        ),
        _speedups(lines(lambda each, side: each.sides[side].speedup, speedup_text)),
    ]
    if sweep.hidden:
        share = lines(
            lambda each, side: (own := sweep.hidden_share(each, side)) and _percent(own), lambda own: figure_interval_text(own, "%")
        )
        panels.append(_panel("hidden", " %", share, within=(0.0, 100.0)))
    return picture(f"{title}: by {sweep.entry}", across, sides, panels)


def _scaled(time_ns: Interval, size: float) -> Interval:
    return Interval(estimate=time_ns.estimate / size, low=time_ns.low / size, high=time_ns.high / size)


def _speedups(lines: Mapping[str, Sequence[Mark]]) -> Panel:
    """A panel around 1x, as the report's chart of speedups."""
    return Panel("speedup", speedup_axis(mark.figure for marks in lines.values() for mark in marks).axis, "x", lines, one=1.0)


def _panel(title: str, unit: str, lines: Mapping[str, Sequence[Mark]], within: Sequence[float] = ()) -> Panel:
    """A panel whose axis holds all intervals and `within`, and begins at 0 where it is not logarithmic."""
    ends = [*within, *(end for marks in lines.values() for mark in marks for end in (mark.figure.low, mark.figure.high))]
    low, high = min(ends), max(ends)
    if low > 0 and high / low >= _LOG_FROM:
        return Panel(title, Axis(low / _ROOM, high * _ROOM, is_log=True), unit, lines)
    return Panel(title, Axis(min(0.0, low * _ROOM), high + (_ROOM - 1) * (high - min(0.0, low)) / 2, is_log=False), unit, lines)

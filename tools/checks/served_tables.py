"""What RESULTS.md shows first of a folder whose pairs serve requests: all of them at one load, in one table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from common.python.gate.expectations import key_text
from common.python.pairs.serving import LOAD
from common.python.results import Interval
from tools.campaign.sweeps import GOODPUT, TPOT, TTFT, TTFT_TAIL, LoadSweep
from tools.checks.load_pages import figure_cell
from tools.checks.measured_pairs import MeasuredPair
from tools.checks.written_tables import NOT_MEASURED, rows

AT = 0.8
HEADS = ("pair", "GPU", "side", "TTFT p50 ms", "TTFT p95 ms", "TPOT p50 ms", "tokens/s", "goodput")
_COLUMNS = (TTFT, TTFT_TAIL, TPOT, "output_tokens_per_s", GOODPUT)
_TOLD = f"""\
## Served at {AT:g} of saturation

Requests come at random, {AT:g} times as often as the baseline answers them when all come at once.
Goodput is the share of requests within the workload's service level. Sections of the pairs say where each was measured."""

Figures = Mapping[str, Mapping[str, Interval]]


def served_table(pairs: Iterable[MeasuredPair], by_load: Mapping[str, Mapping[str, LoadSweep]]) -> str:
    """The section of a folder, of its pairs whose load the command line chooses; "" where none of them was measured at that load."""
    served = {measured.pair.name: _at_load(measured, by_load) for measured in pairs if _has_load(measured, by_load)}
    body = (cells for name, found in served.items() for cells in _lines(name, found))
    return "\n\n".join([_TOLD, rows(HEADS, body)]) if any(served.values()) else ""


def _has_load(measured: MeasuredPair, by_load: Mapping[str, object]) -> bool:
    shapes = (expected.shape for _, _, expected in measured.timings())
    named = LOAD in measured.pair.workload.read_text(encoding="utf-8")
    return named or measured.pair.name in by_load or any(LOAD in shape for shape in shapes)


def _lines(name: str, found: Mapping[str, Figures]) -> Iterator[list[str]]:
    """A line a GPU model and side, or one that says that nobody has measured the pair at this load."""
    link = f"[{name}](#{name})"
    if not found:
        yield [link, "", "", NOT_MEASURED, *[""] * (len(HEADS) - 4)]
    for model, sides in found.items():
        for side, figures in sides.items():
            yield [link, key_text(model), side, *(figure_cell(figures, column) for column in _COLUMNS)]


def _at_load(measured: MeasuredPair, by_load: Mapping[str, Mapping[str, LoadSweep]]) -> dict[str, Figures]:
    """By GPU model what each side's requests saw: of a kept record, else of the accepted row, where that has this load."""
    accepted = {model: expected.figures for model, _, expected in measured.timings() if expected.shape.get(LOAD) == AT and expected.figures}
    sweeps = by_load.get(measured.pair.name, {})
    return accepted | {key: each.sides for key, sweep in sweeps.items() for each in sweep.loads if each.load == AT}

"""The tables of a chapter's README: five short columns, a row a pair and shape, and for each ladder a row a step."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from common.python.errors import BenchmarkError
from common.python.gate.expectations import Expectation, key_text
from common.python.pairs.directives import read_directives
from common.python.pairs.goals import TIME
from common.python.pairs.workload import DEFAULT_SHAPE
from common.python.results import BASELINE, OPTIMIZED, Interval, Share
from common.python.wording import at_shape
from tools.checks.measured_pairs import LIBRARY, README, MeasuredPair, is_converted
from tools.checks.predicted_ratios import prediction_cell, require_prediction
from tools.checks.written_tables import NOT_MEASURED, rows, shown

COLUMNS = ("pair", "idea", "predicted", "measured", "share of ceiling")
STEP_COLUMNS = ("step", "the one change", "gain", "share of ceiling")
CELL = 60
"""The most characters of a cell, as it is shown: of a link its text counts."""
IDEA_WORDS = 12
NOT_ACCEPTED = "not accepted"
OR_NONE = " (or none)"
GLOSSARY = Path("common/docs/glossary.md")
_CUT = "…"
_HEADING = re.compile(r"^#{2,6} +(.+?) *#*$", re.MULTILINE)


def tables(pairs: Iterable[MeasuredPair], readme: str, root: Path) -> str:
    """The table of one folder's pairs, in the order of their sections, and behind it those of its ladders, for the page `readme`.

    Raises BenchmarkError, naming the file, for a pair that predicts nothing and, in a converted page, for an idea that is too long.
    """
    pairs = list(pairs)
    for measured in pairs:
        require_prediction(measured, root)
    links, converted = sections(readme), is_converted(readme)
    order = list(links)
    pairs.sort(key=lambda measured: order.index(measured.pair.name) if measured.pair.name in links else len(order))
    body = [row for measured in pairs for row in _pair_rows(measured, links, converted)]
    ladders = [ladder(measured, converted) for measured in pairs if measured.steps]
    ending = "Times with intervals, library, proofs and where each was measured: [RESULTS.md](RESULTS.md)."
    if OR_NONE in "".join(ladders) + "".join(row[COLUMNS.index("measured")] for row in body):
        ending = f"Where a gain's interval holds 1, `{OR_NONE.strip()}` stands behind it. {ending}"
    if (root / GLOSSARY).is_file():
        ending += f" Words: [glossary]({os.path.relpath(root / GLOSSARY, pairs[0].pair.workload.parent)}#what-a-result-says)."
    return "\n\n".join([rows(COLUMNS, body), *ladders, ending])


def sections(readme: str) -> dict[str, str]:
    """By the first word of each heading of a page the anchor of its section, as GitHub names it."""
    found: dict[str, str] = {}
    for heading in _HEADING.findall(readme):
        text = shown(heading)
        anchor = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        found.setdefault(text.split()[0].strip(":,."), anchor)
    return found


def _pair_rows(measured: MeasuredPair, links: dict[str, str], converted: bool) -> Iterator[list[str]]:
    name = measured.pair.name
    link = f"#{links[name]}" if name in links else measured.optimized.name
    steps = len(measured.steps)
    idea = f"a ladder of {steps} steps, below" if steps else idea_cell(measured.optimized, converted)
    for number, shape in enumerate(measured.shapes or (DEFAULT_SHAPE,)):
        first = number == 0
        found = measured.at(shape)
        speedups = [f"{key_text(model)} {_speedup(expected)}" for model, expected in found.items()]
        yield [
            f"[{name}]({link}){at_shape(shape)}" if first else f"{name}{at_shape(shape)}",
            idea if first else "",
            joined(prediction_cell(measured, shape).split(", ")),
            joined(speedups),
            joined([f"{key_text(model)} {both}" for model, expected in found.items() if (both := _shares(expected))]),
        ]


def idea_cell(path: Path, converted: bool) -> str:
    """The first line of a file, which a converted page shows whole and another cuts at a word where it is too long."""
    idea = read_directives(path).idea.removesuffix(".")
    words = idea.split(" ")
    if len(words) <= IDEA_WORDS and len(shown(idea)) <= CELL:
        return idea
    if converted:
        raise BenchmarkError(
            f"{path}:1: found an idea of {len(words)} words and {len(shown(idea))} characters; "
            f"expected at most {IDEA_WORDS} and {CELL}, as {path.parent.name}/{README} is of form 2"
        )
    kept = words[:IDEA_WORDS]
    while len(shown(" ".join(kept))) + len(_CUT) > CELL:
        kept.pop()
    return " ".join(kept).rstrip(",;:.") + _CUT


def joined(entries: Iterable[str]) -> str:
    """Entries of a cell, separated by commas, as many as it has room for and a mark if there are more; RESULTS.md has them all."""
    whole = list(entries)
    kept = list(whole)
    while len(", ".join(kept)) + (len(kept) < len(whole)) * (1 + len(_CUT)) > CELL:
        kept.pop()
    return ", ".join(kept) + (f" {_CUT}" if len(kept) < len(whole) else "") or NOT_MEASURED


def ratio_text(ratio: float) -> str:
    """A ratio in as few digits as a table needs: 1.34x, 7.5x, 81.4x, 220x."""
    return f"{ratio:.{2 if ratio < 1.995 else 1 if ratio < 99.95 else 0}f}x"


def share_text(share: Share) -> str:
    """A share of the ceiling in whole percent, with a decimal where it is less than one: 86 %, 0.5 %."""
    percent = 100 * share.share
    return f"{percent:.{0 if percent >= 0.95 else 1}f} %"


def _speedup(expected: Expectation) -> str:
    return _gain_text(expected.ratio) + ("" if expected.goal == TIME else f" {expected.goal}")


def _gain_text(ratio: Interval) -> str:
    """A ratio, marked where its 95 % interval holds 1, so that neither side was shown to be the better one."""
    return ratio_text(ratio.estimate) + (OR_NONE if ratio.low <= 1 <= ratio.high else "")


def _shares(expected: Expectation) -> str:
    reached = [expected.sides[side].share for side in (BASELINE, OPTIMIZED)]
    return " -> ".join(share_text(share) if share else "?" for share in reached) if any(reached) else ""


def ladder(measured: MeasuredPair, converted: bool) -> str:
    """The table of a ladder: every step, what it changes, its gain over the step before, and its share; last, the library's share."""
    shapes = measured.shapes
    climbed = [("", BASELINE), *measured.steps, *([("", LIBRARY)] if LIBRARY in measured.pair.sides else [])]
    body = [_step_row(measured, before, after, converted) for before, after in climbed]
    order = f" Figures are for {', '.join(f'@{shape}' for shape in shapes)}, in this order." if len(shapes) > 1 else ""
    return f"The ladder of `{measured.pair.name}`: a gain is over the step before.{order}\n\n{rows(STEP_COLUMNS, body)}"


def _step_row(measured: MeasuredPair, before: str, after: str, converted: bool) -> list[str]:
    path = measured.pair.sides[after]
    link = f"[{after}]({os.path.relpath(path, measured.pair.workload.parent)})"
    gains = _by_model(measured, lambda expected: _gain(expected, before, after)) if before else ""
    own = path.parent == measured.pair.workload.parent  # a step from elsewhere has the form of the page there
    return [link, idea_cell(path, converted and own), gains, _by_model(measured, lambda expected: _share(expected, after))]


def _by_model(measured: MeasuredPair, figure: Callable[[Expectation], str]) -> str:
    """A figure of every shape, a model each: `H200 4.3x / 4.3x / 1.6x`."""
    by_model = {
        model: [figure(rows[shape]) if shape in rows else "" for shape in measured.shapes] for model, rows in measured.models.items()
    }
    return joined(f"{key_text(model)} {' / '.join(each or '?' for each in figures)}" for model, figures in by_model.items() if any(figures))


def _gain(expected: Expectation, before: str, after: str) -> str:
    """What a step gained over the one before it; empty where it was not timed, or over another."""
    if rung := expected.rungs.get(after):
        return _gain_text(rung.ratio) if rung.over == before else ""
    return NOT_ACCEPTED if expected.rungs and after in expected.sides else ""


def _share(expected: Expectation, side: str) -> str:
    found = expected.sides.get(side)
    return share_text(found.share) if found and found.share else ""

"""Measured values in prose: a marker in the text is filled in from the expectations files, and checked against them from then on.

    {{measured: ch07:transpose speedup}}                                      what one writes
    <!-- measured: ch07:transpose speedup -->7.45x (H200)<!-- /measured -->   what becomes of it

TARGET [@SHAPE] FIGURE [@SHAPE] [on MODEL], where FIGURE is speedup, of_library, time SIDE, share SIDE or rung STEP; of a pair with
another goal than time also gain, and figure SIDE. Without a model, all that were measured are told. A shape must be named where a pair
has several. Code is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from common.python.errors import BenchmarkError
from common.python.gate.expectations import Expectation, key_text
from common.python.results import OPTIMIZED
from common.python.wording import figure_text, significant, time_text
from tools.checks.measured_pairs import LIBRARY, MeasuredPair, of_library
from tools.checks.short_tables import NOT_ACCEPTED, share_text
from tools.checks.written_tables import NOT_MEASURED

_BARE = re.compile(r"\{\{measured: *(?P<bare>[^{}]*?) *\}\}")
_PAIR = re.compile(r"<!-- measured: *(?P<what>.*?) *-->(?P<value>.*?)<!-- /measured -->", re.DOTALL)
_OPEN = re.compile(r"<!-- /?measured\b")
_CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]+`|(?<=\n\n)(?:(?: {4}|\t)[^\n]*\n?)+", re.DOTALL | re.MULTILINE)
_FIGURE = r"speedup|of_library|gain|(?:time|share|rung|figure) \S+"
_WHAT = re.compile(rf"(?P<target>\S+?)(?: ?@(?P<at>.+?))? (?P<figure>{_FIGURE})(?: @(?P<shape>.+?))?(?: on (?P<model>\w+))?")
_EXPECTED = "TARGET [@SHAPE] FIGURE [on MODEL], the figure one of speedup, of_library, time SIDE, share SIDE, rung STEP, gain, figure SIDE"


def filled(page: Path, text: str, known: Mapping[str, MeasuredPair]) -> str:
    """`text`, what `page` says, with the value of every marker in it, and each bare one as a pair of comments.

    Raises BenchmarkError, naming file and line, for a marker of an unknown target, figure, side or shape, and for half a pair.
    """
    return "".join(_of_code(page, text, known))


def _of_code(page: Path, text: str, known: Mapping[str, MeasuredPair]) -> Iterator[str]:
    """The text in parts, code as it is and the rest filled in."""
    start = 0
    for code in _CODE.finditer(text):
        yield _fill(page, text, (start, code.start()), known)
        yield code[0]
        start = code.end()
    yield _fill(page, text, (start, len(text)), known)


def _fill(page: Path, text: str, span: tuple[int, int], known: Mapping[str, MeasuredPair]) -> str:
    part = text[slice(*span)]
    line = text.count("\n", 0, span[0]) + 1

    def written(match: re.Match[str]) -> str:
        what = " ".join(match.groupdict().get("what", match.groupdict().get("bare", "")).split())
        where = f"{page}:{line + part.count(chr(10), 0, match.start())}"
        return f"<!-- measured: {what} -->{value_of(what, known, where)}<!-- /measured -->"

    without = _PAIR.sub(lambda match: "\n" * match[0].count("\n"), part)
    if half := _OPEN.search(without):
        at = line + without.count("\n", 0, half.start())
        raise BenchmarkError(
            f"{page}:{at}: found half of a marker; expected `<!-- measured: ... -->` and `<!-- /measured -->` around a value"
        )
    return _BARE.sub(written, _PAIR.sub(written, part))


def value_of(what: str, known: Mapping[str, MeasuredPair], where: str) -> str:
    """What a marker is to show, with the GPU models that it is of: `7.45x (H200)`. Raises BenchmarkError, naming `where` it stands."""
    match = _WHAT.fullmatch(what)
    if match is None:
        raise BenchmarkError(f"{where}: found `measured: {what}`; expected {_EXPECTED}")
    measured = known.get(match["target"])
    if measured is None:
        raise BenchmarkError(f"{where}: found the target {match['target']}; expected one that `list-targets` shows")
    figure = _figure(match["figure"], measured, where)
    model = (match["model"] or "").lower()
    shape = _shape(match["at"] or match["shape"] or "", measured, where)
    models = [model] if model else list(measured.models)
    found = {key: measured.models[key][shape] for key in models if shape in measured.models.get(key, {})}
    values = [f"{value} ({key_text(key)})" for key, expected in found.items() if (value := figure(expected))]
    return ", ".join(values) or (f"{NOT_MEASURED} ({key_text(model)})" if model else NOT_MEASURED)


def _shape(named: str, measured: MeasuredPair, where: str) -> str:
    """The named shape, or the only one that a pair has; any name where nothing was measured."""
    shapes = measured.shapes
    if shapes and ((named and named not in shapes) or (not named and len(shapes) > 1)):
        expected = f"one of {', '.join(f'@{shape}' for shape in shapes)}"
        raise BenchmarkError(f"{where}: found {f'@{named}' if named else 'no shape'} for {measured.pair.target}; expected {expected}")
    return named or (shapes[0] if shapes else "")


def _figure(text: str, measured: MeasuredPair, where: str) -> Callable[[Expectation], str]:
    """How a figure is read from what was measured, as text; "" where that does not have it."""
    kind, _, side = text.partition(" ")
    steps = [after for _, after in measured.steps]
    sides = steps if kind == "rung" else [LIBRARY] if kind == "of_library" else list(measured.pair.sides)
    wanted = {"speedup": OPTIMIZED, "gain": OPTIMIZED, "of_library": LIBRARY}.get(kind, side)
    if wanted not in (sides if kind != "of_library" else measured.pair.sides):
        expected = f"one of {', '.join(sides)}" if sides and kind != "of_library" else "a pair that has one"
        raise BenchmarkError(f"{where}: found `{text}` of {measured.pair.target}, which has no {kind} of {wanted}; expected {expected}")
    readers: dict[str, Callable[[Expectation], str]] = {
        "speedup": lambda expected: f"{significant(expected.speedup.estimate)}x",
        "gain": lambda expected: f"{significant(expected.ratio.estimate)}x",
        "figure": lambda expected: _goal_figure(expected, side),
        "of_library": _of_library,
        "time": lambda expected: time_text(expected.sides[side].time_ns.estimate) if side in expected.sides else "",
        "share": lambda expected: _share(expected, side),
        "rung": lambda expected: _rung(expected, side, {after: before for before, after in measured.steps}),
    }
    return readers[kind]


def _of_library(expected: Expectation) -> str:
    ratio = of_library(expected)
    return f"{significant(ratio.estimate)}x" if ratio else ""


def _goal_figure(expected: Expectation, side: str) -> str:
    """What a side has of the goal of its pair, where that is not time."""
    own = expected.sides.get(side)
    return figure_text(own.figure.estimate, expected.unit) if own and own.figure else ""


def _share(expected: Expectation, side: str) -> str:
    found = expected.sides.get(side)
    return share_text(found.share) if found and found.share else ""


def _rung(expected: Expectation, step: str, before: Mapping[str, str]) -> str:
    if rung := expected.rungs.get(step):
        return f"{significant(rung.ratio.estimate)}x" if rung.over == before[step] else ""
    return NOT_ACCEPTED if expected.rungs and step in expected.sides else ""

"""What the pages say of a prediction: its ratio, at which shape, and whether what was measured is beyond 1.25 times of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from common.python.errors import BenchmarkError
from common.python.gate.expectations import Expectation, key_text
from common.python.pairs.directives import ladder_expects, read_directives
from common.python.wording import significant
from tools.checks.measured_pairs import MeasuredPair, place

MISSED = 1.25
"""The factor from which on a figure is so far from what was predicted that the page calls it a miss."""

_RATIO = re.compile(r"(\d+(?:\.\d+)?)x(?: at ([^,:;]+?))?(?= and |,|:|;|$)")
_AT = re.compile(r"(\d+(?:\.\d+)?)x at ([^,:;]+?)(?= and |,|:|;|$)")


@dataclass(frozen=True)
class Prediction:
    """A predicted ratio as its line writes it, `3x`, and the words for the shape that it is of; "" where it is of every shape."""

    text: str
    at: str = ""

    @property
    def ratio(self) -> float:
        """The ratio."""
        return float(self.text.removesuffix("x"))

    def __str__(self) -> str:
        return f"{self.text} at {self.at}" if self.at else self.text


def said_of(path: Path, ladder: Mapping[Path, str] | None = None) -> str:
    """What the line of a side's prediction says; in a `ladder`, what that says behind the step goes first.

    Raises BenchmarkError where neither says anything.
    """
    if text := (ladder or {}).get(path) or read_directives(path).expects:
        return text
    where = ", or `# expects:` behind this step of the ladder" if ladder is not None else ""
    raise BenchmarkError(f"{path}: found no `expects:` line; expected the ratio that its bytes, flops or launches predict{where}")


def said_in_ladder(measured: MeasuredPair, root: Path) -> dict[Path, str]:
    """By file what the workload says behind the steps of its ladder."""
    return {root / step: text for step, text in ladder_expects(measured.pair.workload).items()}


def predictions_in(text: str) -> tuple[Prediction, ...]:
    """The ratios that a line predicts: the one that it begins with, or each `1.2x at k = 1024` in it."""
    if at := [Prediction(f"{ratio}x", place) for ratio, place in _AT.findall(text)]:
        return tuple(at)
    first = _RATIO.match(text)
    return (Prediction(f"{first[1]}x"),) if first else ()


def prediction_at(predictions: Sequence[Prediction], shape: str, shapes: Mapping[str, Expectation]) -> Prediction | None:
    """Of these the one for the shape of that name, of all `shapes` that a pair has; None where none or several may be meant.

    Its words name the shape, or a value of it that another shape does not have.
    """
    if len(predictions) == 1 and not predictions[0].at:
        return predictions[0]
    values = {name: expected.shape for name, expected in shapes.items()}
    others = [value for name, value in values.items() if name != shape]
    own = {str(value) for key, value in values.get(shape, {}).items() if not others or any(other.get(key) != value for other in others)}
    names = {*re.findall(r"\w+", shape), *own}
    found = [prediction for prediction in predictions if _names_one(prediction.at, names)]
    return found[0] if len(found) == 1 else None


def _names_one(words: str, names: Iterable[str]) -> bool:
    return bool(set(re.findall(r"\w+", words)) & set(names))


def factor(measured: float, predicted: float) -> float:
    """How many times one is the other, whichever is larger."""
    return max(measured / predicted, predicted / measured)


def prediction_cell(measured: MeasuredPair, shape: str) -> str:
    """The prediction for a shape, with `missed` where what was measured is further from it than `MISSED` allows."""
    predictions = predictions_in(said_of(measured.optimized))
    rows = measured.at(shape)
    found = prediction_at(predictions, shape, _shapes_of(measured))
    if found is None:
        return ", ".join(map(str, predictions))
    missed = [key_text(model) for model, expected in rows.items() if factor(expected.ratio.estimate, found.ratio) > MISSED]
    if not missed:
        return found.text
    return f"{found.text} (missed)" if len(missed) == len(rows) else f"{found.text} (missed on {', '.join(missed)})"


def _shapes_of(measured: MeasuredPair) -> dict[str, Expectation]:
    return {shape: expected for _, shape, expected in measured.timings()}


def predicted_lines(measured: MeasuredPair) -> list[str]:
    """A line for every timing of which one ratio was predicted: the prediction, what was measured, and whether it missed."""
    predictions = predictions_in(said_of(measured.optimized))
    shapes = _shapes_of(measured)
    lines = []
    for model, shape, expected in measured.timings():
        if found := prediction_at(predictions, shape, shapes):
            away = factor(expected.ratio.estimate, found.ratio)
            verdict = f"missed, {significant(away)} times apart" if away > MISSED else "within 1.25 times"
            lines.append(f"- {place(model, shape)}: predicted {found.text}, measured {significant(expected.ratio.estimate)}x: {verdict}")
    return lines

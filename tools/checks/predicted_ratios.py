"""What the pages say of a prediction: its ratio, at which shape, and whether what was measured is beyond 1.25 times of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from common.python.errors import BenchmarkError
from common.python.gate.expectations import Expectation, key_text
from common.python.gate.predicted import terms_of
from common.python.pairs.directives import ladder_expects, read_directives
from common.python.pairs.predictions import DEFAULT_MODEL, amount_text, card_of, predictions_of
from common.python.pairs.predictions import Prediction as Equation
from common.python.pairs.predictions import predictions_in as read_lines
from common.python.pairs.serving import RATES
from common.python.results import BASELINE, OPTIMIZED, Interval, PredictedTerm
from common.python.wording import ratio_text, significant
from tools.checks.measured_pairs import MeasuredPair, place
from tools.checks.written_tables import NOT_MEASURED, rows

MISSED = 1.25
"""The factor from which on a figure is so far from what was predicted that the page calls it a miss."""

SEE_RESULTS = "see RESULTS.md"
TERM_COLUMNS = ("term", "equation", "predicted", "measured", "measured / predicted")

_EQUATION = re.compile(r"^\s*(?://|#)\s*(predicts|guess)(@[^:]*)?:(?!:)\s*(\S.*?)\s*$", re.MULTILINE)
_IS_RATIO = re.compile(r"speedup|.*, baseline over optimized")
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


def terms_at(measured: MeasuredPair, shape: str, expected: Expectation) -> list[PredictedTerm]:
    """The terms of a pair's `predicts:` and `guess:` lines beside what was measured; none where it has no such line."""
    return terms_of(measured.pair, expected, shape) if equations(measured) else []


def equations(measured: MeasuredPair) -> list[str]:
    """The `predicts:` and `guess:` lines of a pair: of its workload and of each of its sides but those that another pair lent."""
    own = measured.pair.workload.stem.removeprefix("workload_")
    sides = [path for path in measured.pair.sides.values() if path == measured.optimized or path.stem.partition("_")[2].startswith(own)]
    return [line for path in dict.fromkeys([measured.pair.workload, *sides]) for line in lines_in(path)]


def equations_of(measured: MeasuredPair, side: str) -> list[str]:
    """The equations of a pair that predict one side, each with the shape that it is of."""
    predictions, _ = predictions_of(measured.pair.workload, measured.pair.sides)
    return [f"{f'@{line.shape} ' * bool(line.shape)}{_with_model(line)}" for line in predictions if line.side == side]


def lines_in(path: Path) -> list[str]:
    """What the `predicts:` and `guess:` lines of a file say, a guess as such."""
    found = _EQUATION.findall(path.read_text(encoding="utf-8"))
    return [
        f"guess: {text}" if key == "guess" else f"{shape}{' ' if shape else ''}{_with_model(_parsed(text))}" for key, shape, text in found
    ]


def _parsed(text: str) -> Equation:
    ((line,), _) = read_lines(Path(), f"# predicts: {text}")
    return line


def _with_model(line: Equation) -> str:
    """The text of a line, with the model that its figure is of where the line names none: baseline 1.50 ms on the H200 = ..."""
    card = card_of(DEFAULT_MODEL)
    is_of_a_model = line.unit in ("s", "J") or (card is not None and line.names & card.constants.keys())
    if line.value is None or line.is_counter or line.model or not is_of_a_model:
        return line.text
    return line.text.replace(" = ", f" on the {key_text(DEFAULT_MODEL)} = ", 1)


def said_of(path: Path, ladder: Mapping[Path, str] | None = None) -> str:
    """What the line `expects:` of a side says, "" where there is none; in a `ladder`, what that says behind the step goes first."""
    return (ladder or {}).get(path) or read_directives(path).expects


def require_prediction(measured: MeasuredPair, root: Path) -> None:
    """Raise BenchmarkError, naming the file, for a pair, or a step of its ladder, of which nothing is predicted."""
    said = said_in_ladder(measured, root)
    expected = "the times or the ratio that its bytes, flops or launches predict"
    if not (said_of(measured.optimized) or equations(measured)):
        raise BenchmarkError(f"{measured.optimized}: found no `predicts:`, `guess:` or `expects:` line; expected {expected}")
    for _, step in measured.steps:
        path = measured.pair.sides[step]
        if not (said_of(path, said) or equations_of(measured, step) or lines_in(path) or step == OPTIMIZED):
            raise BenchmarkError(f"{path}: found no `predicts:` line; expected {expected}, here or, of this step, in the workload")


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
    """The predicted ratio for a shape, with `missed` where what was measured, or a term of it, is more than `MISSED` times off."""
    if not equations(measured):
        return _expected_cell(measured, shape)
    if not measured.at(shape):
        return written_ratio(measured)
    terms = {model: terms_at(measured, shape, expected) for model, expected in measured.at(shape).items()}
    ratios = {model: _headline(found) for model, found in terms.items()}
    if not any(ratios.values()):
        cell = _expected_cell(measured, shape)
        if cell == SEE_RESULTS and shape == next(iter(_shapes_of(measured)), shape):
            return written_ratio(measured)
        return cell if cell != SEE_RESULTS or any(terms.values()) else "none"
    texts = {model: f"{'guess ' if ratio.is_guess else ''}{ratio_text(ratio.predicted or 0.0)}" for model, ratio in ratios.items() if ratio}
    is_one = len(set(texts.values())) == 1 and len(texts) == len(terms)  # of a model without equations nothing is predicted
    told = next(iter(texts.values())) if is_one else ", ".join(f"{key_text(model)} {text}" for model, text in texts.items())
    missed = [model for model, ratio in ratios.items() if ratio and ratio.missed]
    if not missed and any(term.missed for found in terms.values() for term in found):
        return f"{told} (a term missed)"
    return told + _missed(missed, len(texts))


def written_ratio(measured: MeasuredPair) -> str:
    """The ratio of the two sides, or the guess, that the lines of a pair nobody measured have written out, with the model they name.

    It is that of the first figure, time or another goal's, of which the lines have a ratio.
    """
    lines, guess = predictions_of(measured.pair.workload, measured.pair.sides)
    if guess:
        return f"guess {ratio_text(guess.value)}"
    for figure in dict.fromkeys(line.figure for line in lines if not line.is_counter):
        of_sides = {line.side: line for line in reversed(lines) if line.figure == figure and not line.is_counter}
        baseline, optimized = (of_sides.get(side) for side in (BASELINE, OPTIMIZED))
        if optimized is not None and optimized.over == BASELINE and optimized.factor:
            return ratio_text(optimized.factor if figure in RATES else 1 / optimized.factor)
        if baseline is not None and optimized is not None and baseline.value and optimized.value:
            gain = optimized.value / baseline.value if figure in RATES else baseline.value / optimized.value
            return ratio_text(gain) + (f" on {key_text(optimized.model)}" if optimized.model else "")
    return SEE_RESULTS


def _headline(terms: Iterable[PredictedTerm]) -> PredictedTerm | None:
    """The term that is the ratio of the two sides, or the optimized side's time as a multiple of the baseline's, turned over.

    A ratio of rates, of which more is better, is turned over too, so that a gain is above 1. None where neither was predicted.
    """
    known = [term for term in terms if term.predicted]
    if ratio := next((term for term in known if _IS_RATIO.fullmatch(term.subject)), None):
        return _turned(ratio) if ratio.subject.partition(",")[0] in RATES else ratio
    return next((_turned(term) for term in known if term.subject == OPTIMIZED and term.unit == f"x {BASELINE}"), None)


def _turned(term: PredictedTerm) -> PredictedTerm:
    """A share as a gain: 0.8 x baseline is 1.25x."""
    predicted, measured = (1 / value if value else None for value in (term.predicted, term.measured))
    return PredictedTerm(subject=term.subject, shape="", predicted=predicted, measured=measured, unit="x", missed=term.missed)


def _expected_cell(measured: MeasuredPair, shape: str) -> str:
    predictions = predictions_in(said_of(measured.optimized))
    found = prediction_at(predictions, shape, _shapes_of(measured))
    if found is None:
        return ", ".join(map(str, predictions)) or SEE_RESULTS
    timed = measured.at(shape)
    return found.text + _missed([model for model, row in timed.items() if factor(row.ratio.estimate, found.ratio) > MISSED], len(timed))


def _missed(missed: Sequence[str], count: int) -> str:
    """What a cell says of the models that missed, of `count` that were measured."""
    if not missed:
        return ""
    return " (missed)" if len(missed) == count else f" (missed on {', '.join(map(key_text, missed))})"


def _shapes_of(measured: MeasuredPair) -> dict[str, Expectation]:
    return {shape: expected for _, shape, expected in measured.timings()}


def outcomes(measured: MeasuredPair) -> Iterator[str]:
    """Each timing's predicted terms beside what was measured: a table a timing, and of the ratio of an `expects:` line a sentence."""
    predictions = predictions_in(said_of(measured.optimized))
    shapes = _shapes_of(measured)
    for model, shape, expected in measured.timings():
        terms = terms_at(measured, shape, expected)
        if terms:
            yield f"{place(model, shape)}, predicted against measured:\n\n" + rows(TERM_COLUMNS, map(_term_cells, terms))
        if not _headline(terms) and (found := prediction_at(predictions, shape, shapes)):
            away = factor(expected.ratio.estimate, found.ratio)
            verdict = f"missed, {significant(away)} times apart" if away > MISSED else f"within {MISSED} times"
            yield f"{place(model, shape)}: predicted {found.text}, measured {significant(expected.ratio.estimate)}x: {verdict}."


@dataclass(frozen=True)
class Headline:
    """A timing's ratio as it was predicted or guessed before anybody measured it, and as it was measured, with its 95 % interval."""

    model: str
    shape: str
    predicted: float
    measured: float
    interval: Interval
    is_guess: bool = False

    @property
    def is_opposite(self) -> bool:
        """Whether a gain was predicted where the whole interval is a loss, or a loss where it is a gain."""
        return self.interval.high < 1 < self.predicted or self.predicted < 1 < self.interval.low

    @property
    def factor(self) -> float:
        """How many times one is the other, whichever is larger."""
        return factor(self.measured, self.predicted)


def headlines(measured: MeasuredPair) -> Iterator[Headline]:
    """Of each timing of a pair its ratio, where one was predicted: by its equations, or else by the line `expects:`."""
    predictions = predictions_in(said_of(measured.optimized))
    for model, shape, expected in measured.timings():
        if found := _headline(terms_at(measured, shape, expected)):
            if found.predicted and found.measured:
                yield Headline(model, shape, found.predicted, found.measured, expected.ratio, found.is_guess)
        elif said := prediction_at(predictions, shape, _shapes_of(measured)):
            yield Headline(model, shape, said.ratio, expected.ratio.estimate, expected.ratio)


def _term_cells(term: PredictedTerm) -> list[str]:
    def amount(value: float | None) -> str:
        if value is None:
            return NOT_MEASURED
        return ratio_text(value) if term.unit == "x" else str(amount_text(value, term.unit))

    equation = f"`{term.expression}`" if term.expression else ""
    if term.predicted is None:
        return [term.subject, equation, f"not compared: {term.why}", amount(term.measured), ""]
    ratio = "" if term.ratio is None else f"{significant(term.ratio)}{', missed' if term.missed else ''}"
    return [term.subject, equation, f"{'guess ' if term.is_guess else ''}{amount(term.predicted)}", amount(term.measured), ratio]

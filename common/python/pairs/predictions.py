r"""What a pair predicts, one equation per line: parsed as text, refused where its arithmetic is wrong, compared with measurements.

    predicts: SIDE [FIGURE] VALUE UNIT = EXPRESSION [on MODEL] (NOTE)     `optimized 1.09 ms = 412e9 / tf32 + 0.06e-3  (tensor cores)`
    predicts: counter NAME [SIDE] VALUE = EXPRESSION                      a profiler's counter; of the optimized side unless one is named
    predicts: ... = NUMBER x SIDE                                         a multiple of what another side has
    predicts: SIDE VALUE UNIT on MODEL (NOTE)                             a figure that nothing derives, of one GPU model
    predicts@NAME: ...                                                    of the timed shape of that name; else of the first
    guess: 1.2x, WHY                                                      the speedup, where nobody has an equation

FIGURE is `time` unless one is named: `peak_bytes`, `joules`, `error` or a metric of the workload. A UNIT of bytes or joules alone names
`peak_bytes` or `joules`. UNIT is ns, us, ms or s, B to TB, KiB to TiB, mJ, J or kJ, or none. `error` is relative, and has none.
EXPRESSION is arithmetic (+ - * / ** min max) on the constants of a GPU model's card and the entries of the timed shape, in seconds and
bytes. An EXPRESSION without a constant of the card is a literal figure: it is compared only on the model that its line names, or on
DEFAULT_MODEL where the line names none.
"""

from __future__ import annotations

import ast
import json
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from common.python.errors import BenchmarkError

DEFAULT_MODEL = "h200"
MODELS = ("a100", "l40s", "h100", "h200", "gh200", "b100", "b200", "b300", "gb200", "gb300")
"""Those that a line may name; a misspelt one would never be compared."""

TOLERANCE = 0.02
"""How far a written value may be from what its equation comes to, as a share of it."""

CARDS = Path(__file__).with_name("cards")
_TECHNIQUES = Path(__file__).with_name("techniques.tsv")

TIME = "time"
PEAK = "peak_bytes"
JOULES = "joules"
ERROR = "error"
SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "\u03bcs": 1e-6, "ms": 1e-3, "s": 1.0}  # the Greek letter too: keyboards differ
_PREFIXES = "KMGT"
BYTES = (
    {"B": 1.0, "bytes": 1.0}
    | {f"{prefix}B": 1e3 ** (power + 1) for power, prefix in enumerate(_PREFIXES)}
    | {f"{prefix}iB": 1024.0 ** (power + 1) for power, prefix in enumerate(_PREFIXES)}
)
ENERGIES = {"mJ": 1e-3, "J": 1.0, "kJ": 1e3}
_SCALES = {"s": SECONDS, "bytes": BYTES, "J": ENERGIES}
_FIGURES = {"bytes": PEAK, "J": JOULES}  # that a unit alone names

_LINE = re.compile(r"^\s*(?://|#)\s*(predicts|guess)(?:@([^:]*))?:(?!:)\s*(.*?)\s*$")
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_ON_MODEL = re.compile(r"^(.*\S)\s+on\s+([a-zA-Z]\w*)$")
_RATIO = re.compile(rf"({_NUMBER})\s*x\s+(\w+)")
_GUESS = re.compile(r"(\d+(?:\.\d+)?)x(?:[\s,;:(]+(.*?)\)?)?")
_EXAMPLE = "`predicts: optimized 1.09 ms = 412e9 / tf32 + 0.06e-3  (tensor cores)`"


@dataclass(frozen=True)
class Constant:
    """One figure of a GPU model; `kind` is `measured` or, for what a data sheet or the driver says, `chip fact`."""

    value: float
    unit: str
    kind: str
    what: str


@dataclass(frozen=True)
class Card:
    """What predictions take a GPU model to reach, by name, and where those figures come from."""

    model: str
    gpu: str
    driver: str
    measured: str
    constants: Mapping[str, Constant] = field(default_factory=dict)

    @property
    def values(self) -> dict[str, float]:
        """The constants that an expression may name, in bytes/s, flop/s, seconds and counts."""
        return {name: constant.value for name, constant in self.constants.items()}


@dataclass(frozen=True)
class Prediction:
    """One line. A time is in seconds and an amount of memory in bytes, whatever unit it was written in.

    `value` is None where the line has none but its equation, `expression` "" where it has no equation. `over` is the side that `factor` is
    a multiple of, "" for a figure of its own. `shape` is "" for the first timed shape, `model` "" where the line names none.
    """

    where: str
    text: str
    side: str
    figure: str
    value: float | None
    unit: str
    is_counter: bool = False
    expression: str = ""
    over: str = ""
    factor: float = 0.0
    shape: str = ""
    model: str = ""
    note: str = ""

    @property
    def names(self) -> frozenset[str]:
        """The constants and shape entries that the equation names."""
        return frozenset() if self.over or not self.expression else names_in(self.expression)

    def value_at(self, shape: Mapping[str, object], card: Card | None) -> float:
        """What the equation comes to at `shape` with the constants of `card`. Raises BenchmarkError, naming the line."""
        if self.over:
            return self.factor
        if not self.expression:
            return self.value or 0.0
        try:
            return calculate(self.expression, shape, card)
        except BenchmarkError as error:
            raise BenchmarkError(f"{self.where}: {error}") from error

    def model_for(self, shape: Mapping[str, object]) -> str:
        """The one model that a literal figure is of; "" for what any model's card, or none, is enough to work out."""
        if self.names - shape.keys() or (self.unit == "bytes" and self.expression):
            return ""
        is_of_any = self.is_counter or self.unit == "bytes" or self.figure == ERROR or self.over
        return self.model or ("" if is_of_any else DEFAULT_MODEL)

    def require_arithmetic(self, shape: Mapping[str, object]) -> None:
        """Raise BenchmarkError, naming the line, if the two sides of the equation differ by more than TOLERANCE.

        An equation with constants of a model that has no card is held against nothing.
        """
        model = self.model or DEFAULT_MODEL
        card = card_of(model)
        if card is None and self.names - shape.keys():
            return
        found = self.value_at(shape, card)
        if self.value is not None and abs(found - self.value) > TOLERANCE * max(abs(found), abs(self.value)):
            written, right = (amount_text(value, self.unit) for value in (self.value, found))
            raise BenchmarkError(
                f"{self.where}: found {written} = {self.expression}, which is {right} on {model}; expected two sides within 2 %"
            )


@dataclass(frozen=True)
class Guess:
    """A speedup that nobody derived, and why it may be so."""

    where: str
    text: str
    value: float
    note: str


def amount_text(value: float, unit: str) -> str:
    """A figure with up to four digits and its unit: 1.09 ms, 3.2 GB, 0.125."""
    scales = {
        "s": (("ns", 1e-9), ("µs", 1e-6), ("ms", 1e-3), ("s", 1.0)),
        "bytes": tuple((name, BYTES[name]) for name in ("B", "KB", "MB", "GB")),
        "J": tuple(ENERGIES.items()),
    }
    counts = (("million", 1e6), ("billion", 1e9))
    fitting = [scale for scale in scales.get(unit, () if unit else counts) if abs(value) >= scale[1]]
    name, size = fitting[-1] if fitting else (unit, 1.0)
    digits = ".0f" if not fitting and abs(value) >= 1e4 else ".4g"
    return f"{value / size:{digits}}{' ' if name else ''}{name}"


def predictions_in(path: Path, text: str) -> tuple[tuple[Prediction, ...], Guess | None]:
    """The `predicts:` lines of the file at `path`, in their order, and its `guess:`. Raises BenchmarkError, naming file and line."""
    predictions, guesses = [], []
    for number, line in enumerate(text.splitlines(), start=1):
        if match := _LINE.match(line):
            where = f"{path}:{number}"
            key, shape, body = match.groups()
            if not body:
                raise BenchmarkError(
                    f"{where}: found `{key}:` without a value; expected {_EXAMPLE if key == 'predicts' else '`guess: 1.2x`'}"
                )
            if key == "predicts":
                if shape is not None and not shape.strip():
                    raise BenchmarkError(f"{where}: found `predicts@:`; expected the name of a timed shape after the @")
                predictions.append(_prediction(where, (shape or "").strip(), body))
            else:
                guesses.append(_guess(where, shape, body))
        elif alike := lookalike(line):
            raise BenchmarkError(f"{path}:{number}: found `{line.strip()[:60]}`; expected `{alike}:`, in small letters and with its colon")
    if len(guesses) > 1:
        raise BenchmarkError(f"{guesses[1].where}: found a second `guess:`; expected one in a file")
    return tuple(predictions), guesses[0] if guesses else None


def read_predictions(path: Path) -> tuple[tuple[Prediction, ...], Guess | None]:
    """Parse the `predicts:` and `guess:` lines of the file at `path`. The guess is None where no line states one.

    Raises BenchmarkError, naming file and line, for a line that cannot be parsed, and for a file that cannot be read.
    """
    try:
        return predictions_in(path, path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BenchmarkError(f"{path}: {error}; expected a readable UTF-8 text file") from error


def predictions_of(workload: Path, sides: Mapping[str, Path]) -> tuple[tuple[Prediction, ...], Guess | None]:
    """What a pair predicts: the lines of its optimized side, and those of its workload and of its other sides that are its own.

    A file that another pair lent speaks of that pair, so what it predicts is not this one's. Raises BenchmarkError.
    """
    own = workload.stem.removeprefix("workload_")
    files = [sides[side] for side in sides if side == "optimized" or sides[side].stem.partition("_")[2].startswith(own)]
    found = [read_predictions(path) for path in dict.fromkeys([*files, workload])]
    guesses = [guess for _, guess in found if guess]
    if len(guesses) > 1:
        raise BenchmarkError(f"{guesses[1].where}: found a second `guess:`, after {guesses[0].where}; expected one a pair")
    return tuple(prediction for predictions, _ in found for prediction in predictions), guesses[0] if guesses else None


def require_predictions(workload: Path, sides: Mapping[str, Path], shapes: Mapping[str, Mapping[str, object]]) -> int:
    """Check every equation of a pair at the timed `shapes`, and say how many there are.

    Raises BenchmarkError, naming file and line, for a side, shape or constant that does not exist and for arithmetic that is wrong.
    """
    predictions, _ = predictions_of(workload, sides)
    first = next(iter(shapes), "")
    known: dict[tuple[str, ...], str] = {}
    for prediction in predictions:
        require_names(prediction, sides, shapes)
        what = (prediction.side, prediction.figure, prediction.over, prediction.shape or first, prediction.model)
        if before := known.get(what):
            again = f"found {prediction.side} {prediction.figure} predicted again, after {before}"
            raise BenchmarkError(f"{prediction.where}: {again}; expected one line a figure, shape and model")
        known[what] = prediction.where
        prediction.require_arithmetic(shapes.get(prediction.shape or first, {}))
    return len(predictions)


def require_names(prediction: Prediction, sides: Iterable[str], shapes: Iterable[str]) -> None:
    """Raise BenchmarkError, naming the line, for a side or a timed shape that the pair has not."""
    sides, shapes = list(sides), list(shapes)
    for side in filter(None, (prediction.side, prediction.over)):
        if side not in sides:
            raise BenchmarkError(f"{prediction.where}: found the side {side!r}; expected one of {', '.join(sides)}")
    if prediction.shape and prediction.shape not in shapes:
        raise BenchmarkError(f"{prediction.where}: found the timed shape {prediction.shape!r}; expected one of {', '.join(shapes)}")


def _prediction(where: str, shape: str, body: str) -> Prediction:
    text = body
    body, note, model = _without_note(where, body)
    left, equals, right = (part.strip() for part in body.partition("="))
    if not right and (equals or not model):
        raise BenchmarkError(
            f"{where}: found no equation in `predicts: {body}`; expected one, as in {_EXAMPLE}, or the model, as in `on h200`"
        )
    side, figure, is_counter, amount = _subject(where, left)
    ratio = _RATIO.fullmatch(right)
    if amount and ratio:
        raise BenchmarkError(f"{where}: found a value before `= {right}`; expected none, as that side may be another's measurement")
    if amount:
        value, unit = _amount(where, amount)
    elif is_counter or ratio:
        value, unit = None, "s" if figure == TIME else ""
    else:
        raise BenchmarkError(f"{where}: found `{left}` without a value; expected one before the equation, as in {_EXAMPLE}")
    figure = _FIGURES.get(unit, figure) if figure == TIME and not is_counter else figure
    if figure == TIME and unit != "s":
        raise BenchmarkError(f"{where}: found a time in {unit or 'no unit'}; expected one in ns, us, ms or s")
    if (figure == PEAK and unit not in ("", "bytes")) or (figure == JOULES and unit not in ("", "J")) or (figure == ERROR and unit):
        units = {PEAK: "bytes", JOULES: "joules", ERROR: "no unit"}[figure]
        raise BenchmarkError(f"{where}: found {figure} in {unit}; expected {units}")
    if right and not ratio:
        try:
            names_in(right)
        except BenchmarkError as error:
            raise BenchmarkError(f"{where}: {error}") from error
    over, factor = (ratio[2], float(ratio[1])) if ratio else ("", 0.0)
    if model and model not in MODELS:
        raise BenchmarkError(f"{where}: found `on {model}`; expected one of {', '.join(MODELS)}")
    unit = {PEAK: "bytes", JOULES: "J"}.get(figure, unit)
    return Prediction(where, text, side, figure, value, unit, is_counter, right, over, factor, shape, model, note)


def _without_note(where: str, body: str) -> tuple[str, str, str]:
    """What a line says, its note and the model that it ends with: a parenthesis behind an operand multiplies nothing, so it is the note."""
    note, model = "", ""
    if (place := _note_at(body)) is not None:
        inside, _, behind = body[place + 1 :].rpartition(")")
        if behind.strip() and not behind.strip().startswith("on "):
            raise BenchmarkError(f"{where}: found `{behind.strip()}` behind the note; expected a model, as in `on h200`, or nothing")
        body, note, model = body[:place].rstrip(), inside.strip(), behind.strip().removeprefix("on ").strip()
    if match := _ON_MODEL.match(body):
        body, model = match.groups()
    return body, note, model.lower()


def _note_at(body: str) -> int | None:
    """Where the parenthesis of the note opens; None where there is none."""
    depth = 0
    for place, character in enumerate(body):
        before = body[:place]
        is_behind_operand = before[-1:].isspace() and re.search(r"[\w.)]\s*$", before) and not re.search(r"\b(min|max)\s*$", before)
        if character == "(" and not depth and is_behind_operand:
            return place
        depth += {"(": 1, ")": -1}.get(character, 0)
    return None


def _subject(where: str, left: str) -> tuple[str, str, bool, list[str]]:
    """The side, the figure, whether that is a counter, and the words of the value."""
    words = left.split()
    is_counter = words[:1] == ["counter"]
    words = words[1:] if is_counter else words
    names = words[: next((place for place, word in enumerate(words) if re.fullmatch(_NUMBER, word)), len(words))]
    if not 1 <= len(names) <= 2:
        expected = "a counter and perhaps a side" if is_counter else "a side and perhaps a figure"
        raise BenchmarkError(f"{where}: found `{left}`; expected {expected}, a value and its unit, as in {_EXAMPLE}")
    first, second = [*names, "optimized" if is_counter else TIME][:2]
    side, figure = (second, first) if is_counter else (first, second)
    return side, figure, is_counter, words[len(names) :]


def _amount(where: str, words: list[str]) -> tuple[float, str]:
    unit = words[1] if len(words) > 1 else ""
    known = {name: (scale, kind) for kind, scales in _SCALES.items() for name, scale in scales.items()}
    if len(words) > 2 or (unit and unit not in known):
        raise BenchmarkError(f"{where}: found `{' '.join(words)}`; expected a number and one unit of {', '.join(known)}, or none")
    scale, kind = known.get(unit, (1.0, ""))
    return float(words[0]) * scale, kind


def _guess(where: str, shape: str | None, body: str) -> Guess:
    match = _GUESS.fullmatch(body)
    if match is None or shape is not None or not float(match[1]):
        raise BenchmarkError(
            f"{where}: found `guess{'' if shape is None else f'@{shape}'}: {body}`; expected a speedup, as in `guess: 1.2x`"
        )
    return Guess(where, body, float(match[1]), match[2] or "")


_OPERATORS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: math.pow,
}
_FUNCTIONS: Mapping[str, Callable[..., float]] = {"min": min, "max": max}


def calculate(expression: str, shape: Mapping[str, object], card: Card | None) -> float:
    """Value of an equation's right side at `shape` with the constants of `card`; an entry of the shape goes before a constant.

    Raises BenchmarkError for what is no arithmetic, for a name that neither has, and for a result that is no finite figure of 0 or more.
    """
    known = (card.values if card else {}) | {
        key: float(entry) for key, entry in shape.items() if isinstance(entry, (int, float)) and not isinstance(entry, bool)
    }

    def value(node: ast.expr) -> float:
        if isinstance(node, ast.Constant):
            return float(node.value)  # type: ignore[arg-type]  # `_parsed` lets numbers through alone
        if isinstance(node, ast.Name):
            if node.id not in known:
                raise BenchmarkError(f"found {node.id!r} in `{expression}`; expected a constant of the card or an entry of {sorted(shape)}")
            return known[node.id]
        if isinstance(node, ast.BinOp):
            return _OPERATORS[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.UnaryOp):
            return -value(node.operand)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return _FUNCTIONS[node.func.id](*map(value, node.args))
        raise AssertionError(ast.dump(node))

    try:
        found = value(_parsed(expression))
    except (ArithmeticError, ValueError) as error:
        raise BenchmarkError(f"found `{expression}`, where {error}; expected a finite figure of 0 or more") from error
    if not 0 <= found < math.inf:
        raise BenchmarkError(f"found `{expression}`, which is {found:g}; expected a finite figure of 0 or more")
    return found


@cache
def names_in(expression: str) -> frozenset[str]:
    """The constants and the shape's entries that an equation's right side names. Raises BenchmarkError for what is no arithmetic."""
    called = {id(node.func) for node in ast.walk(_parsed(expression)) if isinstance(node, ast.Call)}
    return frozenset(node.id for node in ast.walk(_parsed(expression)) if isinstance(node, ast.Name) and id(node) not in called)


@cache
def _parsed(expression: str) -> ast.expr:
    """The expression, of numbers, names, arithmetic, min and max alone. Raises BenchmarkError."""
    try:
        body = ast.parse(expression, mode="eval").body
        nodes = list(ast.walk(body))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise BenchmarkError(
            f"found `{expression}`, which is no arithmetic; expected numbers, names, + - * / **, min() and max()"
        ) from error
    allowed = (ast.Name, ast.BinOp, ast.UnaryOp, ast.Call, ast.Constant)
    for node in nodes:
        if isinstance(node, ast.expr) and (not isinstance(node, allowed) or not _is_arithmetic(node)):
            raise BenchmarkError(f"found `{ast.unparse(node)}` in `{expression}`; expected numbers, names, + - * / **, min() and max()")
    return body


def _is_arithmetic(node: ast.expr) -> bool:
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float)) and not isinstance(node.value, bool)
    if isinstance(node, ast.BinOp):
        return type(node.op) in _OPERATORS
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.USub)
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS and len(node.args) > 1 and not node.keywords
    return True


def model_of(gpu: str) -> str:
    """The key of a GPU model by the name that the driver gives it: `NVIDIA H200` is h200."""
    return re.sub(r"[^a-z0-9]+", "_", gpu.lower().replace("nvidia", "")).strip("_")


def is_model(gpu: str, model: str) -> bool:
    """Whether a GPU of that name is of the model: `NVIDIA H100 80GB HBM3` is an h100."""
    return f"{model_of(gpu)}_".startswith(f"{model}_")


@cache
def card_of(model: str) -> Card | None:
    """The committed card of a model, None where nobody has measured one. Raises BenchmarkError for a file that is no card."""
    path = CARDS / f"{model}.json"
    return read_card(path) if path.is_file() else None


def card_for(gpu: str) -> Card | None:
    """The committed card of the model that the driver calls `gpu`; None where there is none."""
    models = sorted(path.stem for path in CARDS.glob("*.json"))
    return next((card_of(model) for model in models if is_model(gpu, model)), None)


def read_card(path: Path) -> Card:
    """The card in the file at `path`. Raises BenchmarkError, naming it."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        constants = {name: Constant(**fields) for name, fields in content.pop("constants").items()}
        return Card(**content, constants=constants)
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise BenchmarkError(f"{path}: {error}; expected a card that tools/checks/cards.py wrote") from error


def timed_shapes(workload: Path) -> dict[str, dict[str, object]]:
    """The shapes that a workload file times on a GPU, by name, read as text; none where they are not written out in it."""
    try:
        tree = ast.parse(workload.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):  # importing it will tell
        return {}
    known = dict(_assigned(tree.body))
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "time_at":
            try:
                found = _literal(node.value, known)
            except (ValueError, TypeError, KeyError, ArithmeticError):
                return {}
            if not isinstance(found, dict):
                return {}
            return found if found and all(isinstance(entry, dict) for entry in found.values()) else {"default": found}
    return {}


def _assigned(body: Iterable[ast.stmt]) -> Iterator[tuple[str, object]]:
    """The module's names that are assigned a literal."""
    known: dict[str, object] = {}
    for node in body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            try:
                known[node.targets[0].id] = _literal(node.value, known)
            except (ValueError, TypeError, KeyError, ArithmeticError):
                continue
    yield from known.items()


_IN_SHAPES: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    **_OPERATORS,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.FloorDiv: operator.floordiv,
}


def _literal(node: ast.expr, known: Mapping[str, object]) -> object:
    """The value of a literal, of arithmetic on literals and of names in `known`. Raises ValueError, TypeError or KeyError."""
    if isinstance(node, ast.Dict):
        return {_literal(key, known): _literal(value, known) for key, value in zip(node.keys, node.values, strict=True) if key is not None}
    if isinstance(node, ast.Name):
        return known[node.id]
    if isinstance(node, ast.BinOp):
        return _IN_SHAPES[type(node.op)](_literal(node.left, known), _literal(node.right, known))
    return ast.literal_eval(node)


_ALIKE = {
    "predicts": ("predict", "predicted", "prediction", "predictions"),
    "proves": ("prove", "proof", "proofs", "proven"),
    "guess": ("guesses", "guessed"),
}
_WORD = re.compile(r"^\s*(?://|#)\s*([A-Za-z]+)\b(@[^:]*)?(\s*:(?!:))?\s*(.*?)\s*$")
_PREDICTED = re.compile(rf"(?:baseline|optimized|library|counter \S+)\s+(?:\S+\s+)?(?:{_NUMBER}\s*(?:\w+\s*)?(?:=|on \w+$)|=\s*{_NUMBER})")
_PROVED = re.compile(
    r"(?:not |more |fewer )?(?:kernel \S+|/.+/|\w+)(?: in \S+)?"
    r"|(?:registers|spills|shared_memory|grid|block|cluster|launches|kernels|graph_nodes|blocks|counter \S+|overlap \S+ \S+)"
    r"(?: in \S+)? (?:==|<=?|>=?) .+"
    r"|instruction \S+"
)


def lookalike(line: str) -> str:
    """The claiming directive that a comment was meant to be: `predict:`, `Proves:` or `proves wgmma`; "" for an honest comment.

    A comment is meant so if it begins with the word and goes on with a colon, or with nothing but a claim.
    """
    match = _WORD.match(line)
    if match is None:
        return ""
    word, at, colon, rest = match.groups()
    key = next((key for key, alike in _ALIKE.items() if word.lower() in (key, *alike)), "")
    if not key or (word == key and colon == ":" and (not at or key == "predicts")):
        return ""
    is_key = colon and key != "guess" and (word == word.lower() or word.lower() == key)
    return key if is_key or is_claim(key, rest) else ""


def is_claim(key: str, rest: str) -> bool:
    """Whether `rest` could stand behind `proves:`, `predicts:` or `guess:`, as its `key` says."""
    if key == "predicts":
        return _PREDICTED.match(rest) is not None
    if key == "guess":
        return re.match(r"\d+(\.\d+)?x\b", rest) is not None
    match = _PROVED.fullmatch(rest)
    is_word = re.fullmatch(r"(?:not |more |fewer )?(\w+)(?: in \S+)?", rest)
    return match is not None and (is_word is None or is_word[1] in _techniques())


@cache
def _techniques() -> frozenset[str]:
    names = {line.split("\t")[0] for line in _TECHNIQUES.read_text(encoding="utf-8").splitlines() if not line.startswith("#")}
    return frozenset(names | {word for name in names for word in (name.partition("_")[0],)})

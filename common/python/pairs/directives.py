"""What a file declares about itself, read as text: `// key: value` or `# key: value`, so nothing is imported to plan a run."""

from __future__ import annotations

import ast
import difflib
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from common.python.errors import BenchmarkError
from common.python.pairs.lookalikes import lookalikes_in
from common.python.pairs.predictions import Guess, Prediction, predictions_in

KEYS = ("needs", "instead", "proves", "has", "nvcc", "scratch", "allows", "reason", "expects", "predicts", "guess", "baseline", "traffic")
_SINGLE = ("instead", "reason", "expects", "baseline", "traffic")
_STEP = re.compile(r"""^\s*["']([^"']+)["'],?\s*# expects: (.*\S)""", re.MULTILINE)
_LINE = re.compile(r"^\s*(?://|#)\s*([a-z]+):(?!:)\s*(.*?)\s*$")
_SCRATCH = re.compile(r"^(?P<type>\w[\w\s]*?)\s+(?P<name>\w+)\s*\[(?P<count>[^\]]+)\]$")
_ALLOWED = ("alloc", "sync", "grid", "threads", "processes")


@dataclass(frozen=True)
class Scratch:
    """A workspace array of `count` elements, an expression of the shape's entries."""

    ctype: str
    name: str
    count: str

    def elements(self, shape: Mapping[str, object]) -> int:
        """Number of elements at `shape`. Raises BenchmarkError if it is negative or not integer arithmetic on the entries."""
        count = evaluate(self.count, shape)
        if count < 0:
            raise BenchmarkError(f"scratch {self.name}[{self.count}]: found {count} elements at {dict(shape)}; expected none or more")
        return count


@dataclass(frozen=True)
class Directives:
    """The directives of one file; a key that may appear once is a string, the others are tuples in file order."""

    needs: tuple[str, ...] = ()
    instead: str = ""
    proves: tuple[str, ...] = ()
    has: tuple[str, ...] = ()
    nvcc: tuple[str, ...] = ()
    scratch: tuple[Scratch, ...] = ()
    allows: tuple[str, ...] = ()
    reason: str = ""
    expects: str = ""
    predicts: tuple[Prediction, ...] = ()
    guess: Guess | None = None
    baseline: str = ""
    traffic: str = ""
    idea: str = ""

    def as_text(self) -> dict[str, str]:
        """The directives that are set, for a result document."""
        listed = {"needs": self.needs, "proves": self.proves, "has": self.has, "nvcc": self.nvcc, "allows": self.allows}
        single = {
            "instead": self.instead,
            "reason": self.reason,
            "expects": self.expects,
            "predicts": "; ".join(prediction.text for prediction in self.predicts),
            "guess": self.guess.text if self.guess else "",
            "traffic": self.traffic,
        }
        return {key: ", ".join(value) for key, value in listed.items() if value} | {key: value for key, value in single.items() if value}


def read_directives(path: Path) -> Directives:
    """Directives and first-line idea of the file at `path`.

    Raises BenchmarkError, naming file and line, for a misspelt key, a comment that looks like a directive, a missing or malformed value,
    or a repeated single key. The arithmetic of a prediction is left to who knows the shape: `require_predictions`.
    """
    found: dict[str, list[str]] = {}
    text = _text_of(path)
    for number, line in enumerate(text.splitlines(), start=1):
        match = _LINE.match(line)
        if match is None:
            continue
        key, value = match.groups()
        if key in KEYS:
            if not value:
                raise BenchmarkError(f"{path}:{number}: found `{key}:` without a value; expected one on the same line")
            found.setdefault(key, []).append(value)
        elif near := difflib.get_close_matches(key, KEYS, n=1, cutoff=0.8):
            raise BenchmarkError(f"{path}:{number}: found directive {key!r}; expected {near[0]!r}")
    predicts, guess = predictions_in(path, text)
    for number, told in lookalikes_in(text, KEYS):
        raise BenchmarkError(f"{path}:{number}: {told}")
    for key in _SINGLE:
        if len(found.get(key, [])) > 1:
            raise BenchmarkError(f"{path}: found {len(found[key])} `{key}:` lines; expected one")
    return Directives(
        needs=_comma_separated(found, "needs"),
        proves=tuple(found.get("proves", ())),
        has=tuple(found.get("has", ())),
        nvcc=tuple(flag for value in found.get("nvcc", ()) for flag in value.split()),
        scratch=tuple(_scratch(path, value) for value in found.get("scratch", ())),
        allows=_allows(path, _comma_separated(found, "allows")),
        predicts=predicts,
        guess=guess,
        idea=first_line(text),
        **{key: found[key][0] for key in _SINGLE if key in found},
    )


def first_line(text: str) -> str:
    """The idea that a source file states first, without comment or docstring marks and without its side's name."""
    for line in text.splitlines():
        stripped = line.strip().removeprefix('"""').removesuffix('"""').lstrip("/#").strip()
        if stripped:
            return re.sub(r"^(Baseline|Optimized|Library):\s*", "", stripped)
    return ""


def ladder_steps(workload: Path) -> tuple[str, ...]:
    """The `ladder=(...)` of the workload file; empty where there is none, or no Python: importing it will tell.

    Raises BenchmarkError for a ladder that is not a tuple of literal strings, and for a file that cannot be read.
    """
    text = _text_of(workload)
    try:
        tree = ast.parse(text if "ladder" in text else "")
    except (ValueError, SyntaxError):
        return ()
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "ladder":
            steps = [step.value for step in node.value.elts if isinstance(step, ast.Constant)] if isinstance(node.value, ast.Tuple) else []
            texts = tuple(step for step in steps if isinstance(step, str))
            if not texts or not isinstance(node.value, ast.Tuple) or len(texts) != len(node.value.elts):
                raise BenchmarkError(f'{workload}:{node.lineno}: found ladder={ast.unparse(node.value)}; expected ("naive", "smem", ...)')
            return texts
    return ()


def ladder_expects(workload: Path) -> dict[str, str]:
    """What `# expects: ...` behind a step of the ladder says of it over the step before: a borrowed file says it of its own pair."""
    return dict(_STEP.findall(_text_of(workload)))


def _text_of(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BenchmarkError(f"{path}: {error}; expected a readable UTF-8 text file") from error


def _comma_separated(found: dict[str, list[str]], key: str) -> tuple[str, ...]:
    return tuple(part.strip() for value in found.get(key, ()) for part in value.split(",") if part.strip())


def _scratch(path: Path, value: str) -> Scratch:
    match = _SCRATCH.match(value)
    if match is None:
        raise BenchmarkError(f"{path}: found `scratch: {value}`; expected `scratch: float partial[rows * 4]`")
    return Scratch(match["type"].strip(), match["name"], match["count"].strip())


def _allows(path: Path, values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if value not in _ALLOWED:
            raise BenchmarkError(f"{path}: found `allows: {value}`; expected some of {', '.join(_ALLOWED)}")
    return values


_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.floordiv,
    ast.Mod: operator.mod,
}


def evaluate(expression: str, shape: Mapping[str, object]) -> int:
    """Value of an integer expression (+ - * / // % and parentheses) over the entries of `shape`; `/` rounds down, as in C."""

    def value(node: ast.expr) -> int:
        if isinstance(node, ast.Constant) and isinstance(node.value, int):
            return node.value
        if isinstance(node, ast.Name) and isinstance(entry := shape.get(node.id), int):
            return entry
        if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
            return _OPERATORS[type(node.op)](value(node.left), value(node.right))
        raise BenchmarkError(f"expression {expression!r}: found {ast.unparse(node)!r}; expected integer arithmetic on {sorted(shape)}")

    try:
        return value(ast.parse(expression, mode="eval").body)
    except ZeroDivisionError as error:
        raise BenchmarkError(f"expression {expression!r}: found a division by zero at {dict(shape)}; expected none") from error
    except SyntaxError as error:
        raise BenchmarkError(f"expression {expression!r}: {error.msg}; expected integer arithmetic on {sorted(shape)}") from error

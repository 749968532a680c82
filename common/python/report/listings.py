"""Source files as lines of HTML: highlighted, whole or as what changed from one side to the next."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from markupsafe import Markup, escape
from pygments.lexer import Lexer  # type: ignore[import-untyped]
from pygments.lexers import CudaLexer, PythonLexer  # type: ignore[import-untyped]
from pygments.token import Comment, Keyword, Number, String, Token  # type: ignore[import-untyped]

_CONTEXT_LINES = 3
_CLASSES = ((Comment.Preproc, "p"), (Comment, "c"), (Keyword, "k"), (String, "s"), (Number, "n"))


@dataclass(frozen=True)
class CodeLine:
    """One line; `kind` is what became of it, `gap` where unchanged lines are left out before the next."""

    kind: Literal["same", "added", "removed", "gap"]
    code: Markup


@dataclass(frozen=True)
class Listing:
    """A piece of source; `note` says in words how much it is, or why there is nothing to show."""

    note: str
    lines: tuple[CodeLine, ...] = ()


def whole(path: Path) -> Listing:
    """All of a file. Raises OSError or UnicodeDecodeError if it cannot be read."""
    lines = _highlighted(path, path.read_text(encoding="utf-8"))
    return Listing(f"{len(lines)} lines", tuple(CodeLine("same", line) for line in lines))


def changes(before: Path, after: Path) -> Listing:
    """What `after` has that `before` has not, and the other way round, with the lines around. Raises as `whole` does."""
    old_text, new_text = (path.read_text(encoding="utf-8") for path in (before, after))
    old, new = _highlighted(before, old_text), _highlighted(after, new_text)
    matcher = difflib.SequenceMatcher(None, _lines(old_text), _lines(new_text), autojunk=False)
    lines: list[CodeLine] = []
    for group in matcher.get_grouped_opcodes(_CONTEXT_LINES):
        if lines or group[0][3] > 0:
            lines.append(CodeLine("gap", Markup()))
        for tag, old_from, old_to, new_from, new_to in group:
            if tag == "equal":
                lines += _lines_of("same", new[new_from:new_to])
            else:
                lines += [*_lines_of("removed", old[old_from:old_to]), *_lines_of("added", new[new_from:new_to])]
    added, removed = (sum(line.kind == kind for line in lines) for kind in ("added", "removed"))
    return Listing(f"{added} lines added, {removed} removed" if lines else "the two files are the same", tuple(lines))


def _lines_of(kind: Literal["same", "added", "removed"], lines: Iterable[Markup]) -> list[CodeLine]:
    return [CodeLine(kind, line) for line in lines]


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n")


def _highlighted(path: Path, text: str) -> list[Markup]:
    """The lines of `text`, those that `_lines` finds, escaped, with the words that a reader's eye sorts by marked."""
    lines: list[Markup] = []
    line = Markup()
    for token, piece in _lexer(path).get_tokens(text.removesuffix("\n")):
        for number, part in enumerate(piece.split("\n")):
            if number:
                lines.append(line)
                line = Markup()
            line += _marked(token, part)
    return [*lines, line]


def _lexer(path: Path) -> Lexer:
    return (PythonLexer if path.suffix == ".py" else CudaLexer)(stripnl=False, ensurenl=False)


def _marked(token: Token, text: str) -> Markup:
    css = next((name for kind, name in _CLASSES if token in kind), "")
    return Markup("<i class={}>{}</i>").format(css, text) if css and text.strip() else escape(text)

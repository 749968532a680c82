"""What pages may not say: checked on the front page, and on those of chapters that were written anew. Exit 1 where one does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path

from common.python.command import Arguments, exit_with
from tools.checks.measured_pairs import README, is_converted
from tools.checks.short_tables import CELL
from tools.checks.source import Finding
from tools.checks.written_tables import NOT_MEASURED, shown

PROJECT_ROOT = Path(__file__).resolve().parents[2]

FRONT_LINES, FRONT_WORDS = 120, 1000
SECTION_WORDS = 200
SENTENCE_WORDS = 25
SENTENCES_TOLD = 5
PREDICTED = re.compile(r"\*\*(why it should help|predicted|guess|hypothesis)\b", re.IGNORECASE)
"""How a paragraph begins whose figures are predictions: those are written by hand."""


@dataclass(frozen=True)
class Word:
    """A way of saying something that readers stumbled over: how it is recognized, and what to say."""

    pattern: re.Pattern[str]
    instead: str


def _word(pattern: str, instead: str) -> Word:
    return Word(re.compile(pattern, re.IGNORECASE), instead)


WORDS = (
    _word(r"(?<!in )\bturns?\b(?! (?:on|off|out|into|to|a|an|the)\b)", "wavefront, or pass, or iteration"),
    _word(r"\bplaces? (?:of|for|in) (?:a|the|its|each|every)? ?blocks?\b", "slot, or co-resident block"),
    _word(r"\brows? of (?:this|that|these|those)(?! [a-z]+)", "the noun: rows of the tile"),
    _word(r"\b(?:that|those|these) of (?:the (?:one|ones|other|others)|this|that|these|those|it|them)\b", "the noun, again"),
    _word(r"\bof th(?:is|at) of th(?:is|at)\b", "the noun, again"),
    _word(r"'s? sake\b", "so that, or because of"),
    _word(r"\bparts? of sectors?\b", "partial sectors"),
    _word(r"\b(?:are|is) of (?:two|three|four|\d+) kinds\b", "there are two kinds of, with their nouns"),
    _word(r"\bbeside (?:some )?\d", "the noun of each number, and whether they add up or overlap"),
    _word(r"\band \d[\d.]* (?:are|is|do|does) not\b", "the noun and the unit of the number"),
    _word(r"\bunder ?way\b", "in flight"),
    _word(r"\bat once for\b", "so that, with the noun"),
)

_FIGURE = re.compile(r"(?<![\w.])\d[\d.,]*(?:x\b| ?%)")
_MEASURED = re.compile(r"<!-- measured:.*?-->(.*?)<!-- /measured -->", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_CODE_SPAN = re.compile(r"`[^`]+`")
_DENIED = re.compile(r"\*\*If it missed\.\*\* (?:Nobody has measured [^.]+|Not measured(?: yet)?|Unknown until [^.]+)\.")
_ITEM = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+")
_OPENING = re.compile(r"\s*(?:[-*+]|\d+[.)])?\s*(?:\*\*[^*]+\*\*[:.]?)?")
_SENTENCE = re.compile(r"(?<=[.!?])[)\"'*]*\s+(?=[A-Z0-9`*\[(\"])")
_GENERATED = re.compile(r"<!-- (\w+): (begin|end) -->")


@dataclass(frozen=True)
class Paragraph:
    """Text that belongs together, from its first line on, its markers as they stand; `section` counts the headings before it."""

    line: int
    text: str
    section: int


def paragraphs(text: str) -> list[Paragraph]:
    """The prose of a page: no headings, tables, code, or what stands between the markers of a generated table."""
    found: list[Paragraph] = []
    held: list[str] = []
    start, section, generated, fence = 0, 0, "", ""

    def end() -> None:
        if held:
            found.append(Paragraph(start, "\n".join(held), section))
            held.clear()

    for number, line in enumerate(text.splitlines(), start=1):
        marker = _GENERATED.fullmatch(line.strip())
        opens = re.match(r"\s*(```|~~~)", line)
        is_code = bool(opens or fence or (not held and re.match(r" {4}|\t", line)))
        if opens:
            fence = "" if fence else opens[1]
        generated = (marker[1] if marker[2] == "begin" else "") if marker else generated
        heading = re.match(r"#{1,6} ", line)
        if not line.strip() or marker or generated or is_code or heading or line.startswith("|"):
            end()
            section += bool(heading and not generated and not is_code)
            continue
        if _ITEM.match(line):
            end()
        start = start if held else number
        held.append(line)
    end()
    return found


def sentences(paragraph: Paragraph) -> Iterator[tuple[int, str]]:
    """Line and words of each sentence, as it is shown.

    A span of code is one word, and so is a figure that a marker fills. The bold label that opens a paragraph is none.
    """
    text = _MEASURED.sub("0", paragraph.text)
    text = _COMMENT.sub(lambda match: "\n" * match[0].count("\n"), text)
    text = _CODE_SPAN.sub(lambda match: "`" + re.sub(r"[^\n]", "c", match[0][1:-1]) + "`", text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    place = opening.end() if (opening := _OPENING.match(text)) else 0
    for end in [*(match.start() for match in _SENTENCE.finditer(text, place)), len(text)]:
        piece = text[place:end]
        lead = len(piece) - len(piece.lstrip())
        yield paragraph.line + text.count("\n", 0, place + lead), piece.strip()
        place = end


def words_in(text: str) -> int:
    """How many words a text has: what has a letter or a digit, and is no comment."""
    return sum(bool(re.search(r"\w", word)) for word in _COMMENT.sub("", text).split())


def front_page(path: str, text: str) -> Iterator[Finding]:
    """The front page is short, once it is written anew."""
    lines, words = len(text.splitlines()), words_in(text)
    if lines > FRONT_LINES:
        yield Finding(path, FRONT_LINES + 1, "front page", f"{lines} lines", f"at most {FRONT_LINES}")
    if words > FRONT_WORDS:
        yield Finding(path, 1, "front page", f"{words} words", f"at most {FRONT_WORDS}")


def cells(path: str, text: str) -> Iterator[Finding]:
    """No cell of a chapter's generated tables is wider than a screen has room for."""
    generated = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if marker := _GENERATED.fullmatch(line.strip()):
            generated = marker[1] if marker[2] == "begin" else ""
        elif generated == "table" and line.startswith("|"):
            for cell in re.split(r"(?<!\\)\|", line.strip("|")):
                if len(shown(cell.strip())) > CELL:
                    yield Finding(path, number, "cell", f"{len(shown(cell.strip()))} characters, `{cell.strip()[:30]}`", f"at most {CELL}")


def long_sentences(path: str, found: Iterable[Paragraph]) -> Iterator[Finding]:
    """The first of the sentences that are too long."""
    long = ((line, text) for paragraph in found for line, text in sentences(paragraph) if words_in(text) > SENTENCE_WORDS)
    for line, text in islice(long, SENTENCES_TOLD):
        yield Finding(path, line, "sentence", f"{words_in(text)} words", f"at most {SENTENCE_WORDS}")


def long_sections(path: str, found: Iterable[Paragraph]) -> Iterator[Finding]:
    """Sections that are too long: equations, tables and code are not counted."""
    for _, parts in groupby(found, key=lambda paragraph: paragraph.section):
        section = list(parts)
        count = sum(words_in(text) for paragraph in section for _, text in sentences(paragraph))
        if count > SECTION_WORDS:
            yield Finding(path, section[0].line, "section", f"{count} words", f"at most {SECTION_WORDS}")


def typed_figures(path: str, found: Iterable[Paragraph]) -> Iterator[Finding]:
    """Where a section has a generated figure, ratios and percentages beside it are generated too, but for predictions and code."""
    found = list(found)
    generated = {paragraph.section for paragraph in found if _MEASURED.search(paragraph.text)}
    for paragraph in found:
        if paragraph.section not in generated or PREDICTED.match(_ITEM.sub("", paragraph.text, count=1)):
            continue
        for line, text in _own_text(paragraph):
            for figure in _FIGURE.findall(text):
                expected = "a marker, as in `{{measured: ch07:transpose speedup}}`, or words"
                yield Finding(path, line, "typed figure", f"`{figure}`", expected)


def denied_measurements(path: str, found: Iterable[Paragraph]) -> Iterator[Finding]:
    """A section that shows what was measured does not say that nobody measured it."""
    found = list(found)
    shown_in = {
        paragraph.section for paragraph in found for value in _MEASURED.findall(paragraph.text) if not value.startswith(NOT_MEASURED)
    }
    for paragraph in found:
        if paragraph.section in shown_in and (denied := _DENIED.match(paragraph.text)):
            yield Finding(path, paragraph.line, "measured", f"`{denied[0]}` beside a measured value", "what came of the prediction")


def avoided_words(path: str, found: Iterable[Paragraph]) -> Iterator[Finding]:
    """The field's words, not private ones."""
    for paragraph in found:
        text = _blanked(paragraph.text)
        for word in WORDS:
            for match in word.pattern.finditer(re.sub(r"\s", " ", text)):
                line = paragraph.line + text.count("\n", 0, match.start())
                yield Finding(path, line, "words", f"`{match[0]}`", word.instead)


def _own_text(paragraph: Paragraph) -> Iterator[tuple[int, str]]:
    """Line and text of what a person typed: neither generated, nor code, nor a comment."""
    yield from enumerate(_blanked(paragraph.text).split("\n"), start=paragraph.line)


def _blanked(text: str) -> str:
    """`text` without generated values, comments and code, its lines where they were."""
    for pattern in (_MEASURED, _COMMENT, _CODE_SPAN):
        text = pattern.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    return text


def findings_in(root: Path) -> list[Finding]:
    """Everything that the pages below `root` may not say, by file and line."""
    found: list[Finding] = []
    front = root / README
    if front.is_file() and is_converted(text := front.read_text(encoding="utf-8")):
        found += [*front_page(README, text), *avoided_words(README, paragraphs(text))]
    for page in sorted([*root.glob(f"ch[0-9][0-9]/{README}"), *root.glob(f"labs/*/{README}")]):
        path, text = page.relative_to(root).as_posix(), page.read_text(encoding="utf-8")
        found += cells(path, text)
        if is_converted(text):
            prose = paragraphs(text)
            found += [
                *long_sections(path, prose),
                *long_sentences(path, prose),
                *typed_figures(path, prose),
                *denied_measurements(path, prose),
                *avoided_words(path, prose),
            ]
    return sorted(found, key=lambda finding: (finding.path, finding.line, finding.rule))


def main(arguments: list[str] | None = None) -> int:
    """Print the findings of a tree, this one unless another is named; 1 if there are any."""
    parser = Arguments(description=__doc__)
    parser.add_argument("root", nargs="?", type=Path, default=PROJECT_ROOT, help="a checkout")
    found = findings_in(parser.parse_args(arguments).root)
    for finding in found:
        print(finding)
    print(f"prose: {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    exit_with(main)

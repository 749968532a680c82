"""Comments in a file's header that were meant as directives and would be none: a claim or a need must not vanish in silence."""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Iterator

from common.python.pairs.predictions import is_claim

_MEANT = {
    **dict.fromkeys(("require", "requires", "required", "requirement", "requirements"), "needs"),
    **dict.fromkeys(("claim", "claims", "evidence"), "proves"),
    **dict.fromkeys(("flag", "flags", "nvccflags", "cflags"), "nvcc"),
    **dict.fromkeys(("workspace", "buffer"), "scratch"),
    **dict.fromkeys(("permit", "permits"), "allows"),
    **dict.fromkeys(("fallback", "otherwise"), "instead"),
}
"""Other words for a directive: taken for it where what follows could be its value."""

_FITS = {
    "needs": r"(?:\w+(?: \d+)?|package \S+)(?:, *(?:\w+(?: \d+)?|package \S+))*",
    "nvcc": r"-\S+(?: -\S+)*",
    "scratch": r"\w[\w\s]*\s\w+\s*\[.+\]",
    "allows": r"(?:alloc|sync|grid|threads|processes)(?:[, ]+(?:alloc|sync|grid|threads|processes))*",
    "instead": r"[\w/]+:\w+",
    "baseline": r"\S+\.(?:py|cu)",
}
_LATIN = str.maketrans("асеорхуіјѕһԁԛԝαεορντυικ", "aceopxyijshdqwaeopvtuik")
_COLONS = str.maketrans("\N{RATIO}\N{MODIFIER LETTER COLON}\N{MODIFIER LETTER TRIANGULAR COLON}", ":::")
_COMMENT = re.compile(
    r"^\s*(?P<marks>//+[!<]*|/\*+!?|\*+|#+[:!]?)\s*[@\\]?(?P<key>[A-Za-z]+)(?P<sign>\s*[:=]|\s)(?!:)\s*(?P<value>.*?)(?:\s*\*/)?\s*$"
)
_STRICT = re.compile(r"^\s*(?://|#)\s*[a-z]+:(?!:)")
_BARE = re.compile(r"^\s*(?P<key>[A-Za-z]+)(?P<sign>\s*:)\s*(?P<value>.*?)\s*$")


def lookalikes_in(text: str, keys: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """The line and the rest of a sentence, `found ...; expected ...`, for each comment of the header that looks like one of `keys`.

    The header ends with the first line of code; the first line of a file is its idea. A comment with a letter that only looks like another,
    or with a space before its colon, is refused whatever follows; one in capitals, without a colon, behind other marks or in a docstring
    only where a value follows that its directive could have: a sentence of prose may begin with any word.
    """
    for number, line, in_docstring in _header(text):
        plain = _plain(line)
        match = (_BARE if in_docstring else _COMMENT).match(plain)
        if number == 1 or match is None or (plain == line and _STRICT.match(line) and not _other_word(match, keys)):
            continue
        key, value = _nearest(match["key"], keys), match["value"]
        told = "".join(character for character in line.strip()[:60] if character.isprintable())
        if not key or not value:
            continue
        if plain != line and _STRICT.match(plain) and not _STRICT.match(line):
            yield number, f"found `{told}`, with a character that only looks like another; expected `{key}:` in ASCII"
        elif match["sign"].strip() == ":" and match["sign"] != ":" and match["key"] == key and not in_docstring:
            yield number, f"found `{told}`; expected `{key}:`, with no space before the colon"
        elif _fits(key, value):
            mark = "//" if not in_docstring and match["marks"][0] in "/*" else "#"
            yield number, f"found `{told}`; expected `{mark} {key}: {value[:60]}` on a line of its own"


def _header(text: str) -> Iterator[tuple[int, str, bool]]:
    """The lines before the first line of code, by number, and whether each is of a docstring."""
    closing = ""
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if closing:
            yield number, line, closing != "*/"
            closing = "" if closing in stripped else closing
        elif stripped.startswith(('"""', 'r"""', "/*")):
            opening = "/*" if stripped.startswith("/*") else '"""'
            mark = "*/" if opening == "/*" else '"""'
            closing = "" if mark in stripped.partition(opening)[2] else mark
            yield number, line, opening == '"""'
        elif stripped.startswith(("//", "#")) and not re.match(r"#\s*(?:include|pragma|define|if|ifdef|ifndef)\b", stripped):
            yield number, line, False
        elif stripped:
            return


def _plain(line: str) -> str:
    """`line` with letters and colons that only look like ASCII's replaced, and what is invisible left out."""
    visible = "".join(character for character in line if unicodedata.category(character) != "Cf")
    return unicodedata.normalize("NFKC", visible.translate(_COLONS)).translate(_LATIN)


def _other_word(match: re.Match[str], keys: tuple[str, ...]) -> bool:
    """Whether a comment that has a directive's form has another word for one."""
    return match["key"] not in keys and bool(_nearest(match["key"], keys))


def _nearest(word: str, keys: tuple[str, ...]) -> str:
    """The directive that `word` is, mistyped, in other letters or by its meaning; "" if it is none."""
    small = word.lower()
    if small in keys:
        return small
    near = difflib.get_close_matches(small, keys, n=1, cutoff=0.8)
    swapped = [key for key in keys if sorted(key) == sorted(small)]
    return (near or swapped or [_MEANT.get(small, "")])[0]


def _fits(key: str, value: str) -> bool:
    """Whether `value` could stand behind `key`; never behind one whose value is prose."""
    if key in ("proves", "has"):
        return is_claim("proves", value)
    return key in _FITS and re.fullmatch(_FITS[key], value) is not None

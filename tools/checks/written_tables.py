"""Tables and pages that tools write: put between two marker lines or written whole, or checked against what stands there."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from common.python.command import Arguments
from common.python.errors import BenchmarkError, ExitCode
from common.python.storage import write_whole

NOT_MEASURED = "not measured yet"
Model = TypeVar("Model", bound=BaseModel)


def record(path: Path, model: type[Model], expected: str) -> Model:
    """The document of a committed file. Raises BenchmarkError, naming the file, the first place that is wrong, and what was expected."""
    try:
        return model.model_validate_json(path.read_text(encoding="utf-8"))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise BenchmarkError(f"{path}: {place}: {first['msg']}; expected {expected}") from error


def row(cells: Iterable[str]) -> str:
    """A row of a Markdown table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def shown(cell: str) -> str:
    """What a reader sees of a cell: of a link its text, and no marks of code."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", cell).replace("`", "").replace("\\|", "|")


def rows(head: tuple[str, ...], body: Iterable[Iterable[str]]) -> str:
    """A whole Markdown table."""
    return "\n".join([row(head), row(["---"] * len(head)), *map(row, body)])


def read_readme(readme: Path, what: str) -> str:
    """The text of a README, `what` says whose. Raises BenchmarkError where there is none."""
    try:
        return readme.read_text(encoding="utf-8")
    except OSError as error:
        raise BenchmarkError(f"{readme}: found {error.strerror}; expected {what}") from error


def with_table(readme: Path, whole: str, name: str, text: str) -> str:
    """`whole`, what `readme` says, with `text` between the markers of the table `name`. Raises BenchmarkError without one pair of them."""
    begin_line, end_line = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    before, begin, rest = whole.partition(begin_line + "\n")
    _, end, after = rest.partition(end_line + "\n")
    if not (begin and end) or begin_line in rest or end_line in before + after:
        raise BenchmarkError(
            f"{readme}: found no table to write; expected the lines {begin_line} and {end_line}, each once and in this order"
        )
    return f"{before}{begin}{text}\n{end}{after}"


def write_or_check(rewritten: Callable[[Path], Mapping[Path, str]], root: Path, writer: str, arguments: list[str] | None) -> ExitCode:
    """The command line of `writer`: write each file below `root` that differs from its text, or with `--check` only say which do.

    USAGE then, if any does, or if one cannot be written.
    """
    parser = Arguments(description="Writes tables and pages from what was measured and committed.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a file differs")
    check = parser.parse_args(arguments).check
    try:
        texts = rewritten(root)
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        return ExitCode.USAGE
    stale = [path for path, text in texts.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        if not check:
            write_whole(path, texts[path])
        print(f"{path.relative_to(root)}: " + (f"differs; expected what {writer} writes" if check else "written"))
    print(f"{len(texts) - len(stale)} of {len(texts)} files were up to date")
    return ExitCode.USAGE if check and stale else ExitCode.GOOD

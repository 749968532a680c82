"""What a shell completes beside commands and flags, which typer knows: targets and folders by their names, in bash with its colons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from pathlib import Path

import typer

from common.python.errors import BenchmarkError
from common.python.pairs.directives import first_line
from common.python.pairs.discovery import Tree, discover
from common.python.project import default_root

_ASKED = "_BENCHMARK_CLI_"
_BREAKS = ":="


def folder_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """The folders of the tree that begin with what is typed."""
    return [name for name in _tree(ctx).directories if name.startswith(incomplete)]


def target_names(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """The folders that begin with what is typed; of the only one, or of the one that stands before a colon, each pair with its idea."""
    folders = folder_names(ctx, incomplete.partition(":")[0])
    if ":" not in incomplete and len(folders) != 1:
        return [(name, "") for name in folders]
    pairs = [pair for pair in _tree(ctx).pairs if pair.directory in folders and pair.target.startswith(incomplete)]
    named = [(pair.target, first_line(pair.sides["optimized"].read_text(encoding="utf-8", errors="replace"))) for pair in pairs]
    return named if ":" in incomplete else [*((name, "") for name in folders), *named]


def _tree(ctx: typer.Context) -> Tree:
    """The tree of the command line so far; an empty one where there is no such folder, which the command itself will tell."""
    root = Path(ctx.params.get("root") or default_root())  # what is not completed yet is a text
    try:
        return discover(root)
    except BenchmarkError:
        return Tree(root, (), {})


@contextmanager
def whole_words(arguments: Sequence[str]) -> Iterator[None]:
    """Where bash asks for completions: typer sees words whole that bash has taken apart at a colon, and bash the rest of a word alone."""
    if arguments:  # a shell that asks gives none
        yield
        return
    from common.python.machine.description import set_words_of_bash, variables_of

    if variables_of(_ASKED).get("COMPLETE") != "complete_bash":
        yield
        return
    asked = variables_of("COMP_")
    if not ("WORDS" in asked and asked.get("CWORD", "").isdecimal()):
        found = " and ".join(f"COMP_{name}={asked.get(name, '')!r}" for name in ("WORDS", "CWORD"))
        raise BenchmarkError(f"found {found}; expected the words and the number of one, as bash sets them")
    words, at = joined(asked["WORDS"].split("\n"), int(asked["CWORD"]))
    set_words_of_bash("\n".join(words), str(at))
    typed = words[at].rpartition("=")[-1] if at < len(words) else ""
    printed = StringIO()
    try:
        with redirect_stdout(printed):
            yield
    finally:
        print("\n".join(line.removeprefix(typed[: typed.rfind(":") + 1]) for line in printed.getvalue().splitlines()))


def joined(words: Sequence[str], at: int) -> tuple[list[str], int]:
    """`words` with those joined again that bash has taken apart at colons and equal signs, and the new place of the one `at`."""
    whole: list[str] = []
    place = at
    for index, word in enumerate(words):
        if word and whole and (word[0] in _BREAKS or whole[-1][-1:] in tuple(_BREAKS)):
            whole[-1] += word
            place -= index <= at
        else:
            whole.append(word)
    return whole, place

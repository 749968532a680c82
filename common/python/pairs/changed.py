"""Which pairs a change touches: those of which a file differs from a revision, or a file that one of theirs imports or includes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from common.python.errors import BenchmarkError, ExitCode
from common.python.pairs.discovery import with_rungs
from common.python.pairs.sources import git_in, imported_by
from common.python.pairs.targets import Selection
from common.python.project import PROJECT_ROOT, import_folders

FLAG = "--changed-since"
_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
_HARNESS = (PROJECT_ROOT / "common/python", PROJECT_ROOT / "common/__init__.py")


class NothingChanged(BenchmarkError):
    """No selected pair is touched: nothing to do, and nothing wrong."""

    exit_code = ExitCode.GOOD


def touched(selections: Sequence[Selection], root: Path, revision: str) -> tuple[Selection, ...]:
    """Those of `selections` of which a file, or one that theirs import or include, is not what it was at `revision`.

    What the harness itself is counts for none: it times both sides alike. Raises NothingChanged if none is left, and BenchmarkError if
    `root` is in no git checkout or that has no such revision.
    """
    changed = changed_files(root, revision)
    found = tuple(each for each in selections if not changed.isdisjoint(read_by(each, root)))
    if not found:
        raise NothingChanged(f"{FLAG} {revision}: found nothing to do; no file of {len(selections)} targets changed")
    return found


def changed_files(root: Path, revision: str) -> frozenset[Path]:
    """Files of the checkout of `root` that differ from `revision`, committed or not, or are new."""
    top = git_in(FLAG, root, "rev-parse", "--show-toplevel")
    known = git_in(FLAG, root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if top.returncode or known.returncode:
        raise BenchmarkError(f"{FLAG} {revision}: found no such revision in {root}; expected a commit, a branch or a tag of its checkout")
    folder = Path(top.stdout.rstrip("\n"))
    commands = (
        ("diff", "--name-only", "--no-renames", "-z", known.stdout.strip(), "--"),
        ("ls-files", "--others", "--exclude-standard", "-z"),
    )
    printed = "".join(git_in(FLAG, folder, *command).stdout for command in commands)
    return frozenset((folder / name).resolve() for name in printed.split("\0") if name)


def read_by(selection: Selection, root: Path) -> frozenset[Path]:
    """The files of a pair, its ladder's included, those that they import or include, and so on; none of the harness."""
    pair = with_rungs(selection.pair, root)
    return with_named([pair.workload, *pair.sides.values()], root)


def with_named(files: Iterable[Path], root: Path) -> frozenset[Path]:
    """`files` of `root`, those that they import or include, and so on; none of the harness."""
    found = [path.resolve() for path in files]
    for file in found:  # grows while it is walked
        found += [each for each in dict.fromkeys(_named_in(file, root)) if each not in found]
    return frozenset(found)


def _named_in(file: Path, root: Path) -> Iterator[Path]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return  # a library, or a file that is gone: it names no other
    folders = (file.parent, root, PROJECT_ROOT, *import_folders(root))
    for name in _imported(text) if file.suffix == ".py" else _INCLUDE.findall(text):
        for folder in folders:
            path = (folder / name).resolve()
            if path.is_file() and not any(path.is_relative_to(part) for part in _HARNESS):
                yield path
                break


def _imported(text: str) -> Iterator[str]:
    try:
        yield from imported_by(ast.parse(text))
    except (SyntaxError, ValueError):
        return  # importing it will tell

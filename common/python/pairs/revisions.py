"""A root of pairs as git has it at another revision: its sides, and where a side of it finds the modules that it imports."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from common.python.errors import BenchmarkError
from common.python.pairs.discovery import canonical, discover
from common.python.pairs.sources import cubins_of, git_in, same_files
from common.python.pairs.targets import Selection
from common.python.project import IS_CHECKOUT, PROJECT_ROOT, import_folders
from common.python.results import BASELINE, OPTIMIZED

_FLAG = "--against"
_TAR = "tar"


class Past(NamedTuple):
    """A checkout of another revision.

    commit   what git calls that revision
    root     the root of pairs as it was
    then     the folder that stands for that of the checkout, `now`: a file of one has the same path in the other
    folders  where a side of it finds modules, before all others but those beside it
    """

    commit: str
    root: Path
    then: Path
    now: Path
    folders: tuple[Path, ...]

    def as_now(self, file: Path) -> Path:
        """Where the file of that revision is in the checkout."""
        return self.now / file.relative_to(self.then)


@contextmanager
def checkout(root: Path, revision: str) -> Iterator[Past]:
    """The root and the project that it is a part of, as git has them at `revision`, in a folder that is gone afterwards.

    git's own files are only read, so nothing is left behind in them however the block ends.
    Raises BenchmarkError, naming the flag, if `root` is in no git checkout or that has no such revision with anything below `root`.
    """
    found = git_in(_FLAG, root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    top = git_in(_FLAG, root, "rev-parse", "--show-toplevel")
    if found.returncode or top.returncode:
        raise BenchmarkError(f"{_FLAG} {revision}: found no such revision in {root}; expected a commit, a branch or a tag of its checkout")
    commit, now, root = found.stdout.strip(), Path(top.stdout.rstrip("\n")).resolve(), root.resolve()
    folders = [folder for folder in _folders_of(root) if folder.is_relative_to(now)]
    there = [folder for folder in (root, *folders) if _is_in(now, commit, folder)]
    if root not in there:
        raise BenchmarkError(f"{_FLAG} {revision}: found nothing of {root} in it; expected its pairs")
    with tempfile.TemporaryDirectory(prefix="against_") as folder:
        then, archive = Path(folder).resolve() / now.name, Path(folder, "archive.tar")
        names = [str(each.relative_to(now)) for each in dict.fromkeys(there)]
        packed = git_in(_FLAG, now, "archive", "--format=tar", f"--output={archive}", commit, "--", *names)
        if packed.returncode:
            raise BenchmarkError(f"{_FLAG} {revision}: found nothing of {root} in it ({packed.stderr.strip()}); expected its pairs")
        then.mkdir()
        # By tar: tarfile has no filters before Python 3.11.4, and warns where none is given from 3.12 on.
        unpacked = subprocess.run([_TAR, "-xf", archive, "-C", then], capture_output=True, text=True, check=False)
        if unpacked.returncode:
            why = unpacked.stderr.strip() or f"exit code {unpacked.returncode}"
            raise BenchmarkError(f"{_FLAG} {revision}: found that tar cannot unpack it ({why}); expected room in {folder}")
        archive.unlink()
        past = then / root.relative_to(now)
        as_then = [then / each.relative_to(now) for each in folders]
        yield Past(commit, past, then, now, tuple(each for each in dict.fromkeys([*as_then, *import_folders(past)]) if each.is_dir()))


def _folders_of(root: Path) -> tuple[Path, ...]:
    """Where modules of the project that holds `root` are found."""
    return (PROJECT_ROOT,) if IS_CHECKOUT and root.is_relative_to(PROJECT_ROOT) else import_folders(root)


def _is_in(top: Path, commit: str, folder: Path) -> bool:
    name = os.path.normpath(folder.relative_to(top))
    return git_in(_FLAG, top, "cat-file", "-e", f"{commit}:{'' if name == '.' else name}").returncode == 0


def against(selections: Sequence[Selection], past: Path) -> tuple[list[Selection], list[str]]:
    """Each selected pair with its optimized side of `past`, a root, as the baseline; and a sentence for each that had none there.

    Raises BenchmarkError for a half, and if none is left.
    """
    then = {canonical(pair.target): pair.sides[OPTIMIZED] for pair in discover(past).pairs}
    chosen, notes = [], []
    for selection in selections:
        pair = selection.pair
        if selection.is_half:
            raise BenchmarkError(f"{_FLAG}: found one half of {pair.target}; expected the pair, whose optimized side is compared")
        if canonical(pair.target) not in then:
            notes.append(f"{pair.target} did not exist at that revision: it is left out")
            continue
        sides = {BASELINE: then[canonical(pair.target)], OPTIMIZED: pair.sides[OPTIMIZED]}
        chosen.append(Selection(replace(pair, sides=sides), tuple(sides)))
    if not chosen:
        raise BenchmarkError(f"{_FLAG}: found none of {len(notes)} targets at that revision; expected at least one")
    return chosen, notes


def unlike(past: Past, then: Sequence[Path], now: Sequence[Path]) -> list[Path]:
    """Those files of two processes that are not the same code, as they are called now.

    `then` are those that the side of the revision imported, itself among them, and `now` those of the side that is here.
    """
    of_past = [file for file in then if file.is_relative_to(past.then)]
    pairs = {past.as_now(file): file for file in of_past}
    for side in of_past:
        pairs |= {past.as_now(cubin): cubin for cubin in cubins_of(side)}
    changed = {here: file for here, file in pairs.items() if not same_files(file, here)}
    return sorted({*changed, *(file for file in now if file not in pairs and file not in then)})

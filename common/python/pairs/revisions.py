"""--against: the optimized side as it was at another revision becomes the baseline of the one that is here."""

from __future__ import annotations

import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from common.python.errors import BenchmarkError
from common.python.pairs.discovery import canonical, discover
from common.python.pairs.targets import Selection
from common.python.results import BASELINE, OPTIMIZED


@contextmanager
def checkout(root: Path, revision: str) -> Iterator[Path]:
    """What lies below `root` as git has it at `revision`, in a folder of the same name that is gone afterwards.

    git's own files are only read, so nothing is left behind in them however the block ends.
    Raises BenchmarkError, naming the flag, if `root` is in no git checkout or that has no such revision with anything below `root`.
    """
    found = _git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if found.returncode:
        raise BenchmarkError(
            f"--against {revision}: found no such revision in {root}; expected a commit, a branch or a tag of its checkout"
        )
    with tempfile.TemporaryDirectory(prefix="against_") as folder:
        past, archive = Path(folder, root.resolve().name), Path(folder, "archive.tar")
        packed = _git(root, "archive", "--format=tar", f"--output={archive}", found.stdout.strip())
        if packed.returncode:
            raise BenchmarkError(f"--against {revision}: found nothing of {root} in it ({packed.stderr.strip()}); expected its pairs")
        with tarfile.open(archive) as content:
            content.extractall(past, filter="data")
        archive.unlink()
        yield past


def against(selections: Sequence[Selection], past: Path) -> tuple[list[Selection], list[str]]:
    """Each selected pair with its optimized side of `past`, a checkout, as the baseline; and a sentence for each that had none there.

    Raises BenchmarkError for a half, and if none is left.
    """
    then = {canonical(pair.target): pair.sides[OPTIMIZED] for pair in discover(past).pairs}
    chosen, notes = [], []
    for selection in selections:
        pair = selection.pair
        if selection.is_half:
            raise BenchmarkError(f"--against: found one half of {pair.target}; expected the pair, whose optimized side is compared")
        if canonical(pair.target) not in then:
            notes.append(f"{pair.target} did not exist at that revision: it is left out")
            continue
        sides = {BASELINE: then[canonical(pair.target)], OPTIMIZED: pair.sides[OPTIMIZED]}
        chosen.append(Selection(replace(pair, sides=sides), tuple(sides)))
    if not chosen:
        raise BenchmarkError(f"--against: found none of {len(notes)} targets at that revision; expected at least one")
    return chosen, notes


def _git(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    except FileNotFoundError as error:
        raise BenchmarkError("--against: found no git; expected it on the PATH") from error

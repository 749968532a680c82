"""Which slow tests a check may leave out: those that read nothing that changed since the last tag. Prints options for pytest."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from common.python.command import Arguments, exit_with

PROJECT_ROOT = Path(__file__).resolve().parents[2]

OPTION = "--without-slow"  # tests/conftest.py has it

_ALL = ("constraints.txt", "pyproject.toml", "tests/conftest.py", "tests/support/")
_SHARED = ("common/", "tests/emulation/")
_READS = {
    "tests/ch09": ("tests/ch07/", "tests/ch10/"),
    "tests/ch10": ("ch09/", "tests/ch07/", "tests/ch09/", "common/cuda/", "tests/emulation/"),
    "tests/emulation": ("ch",),
}
# Proofs of kernels, which take many minutes: cheap tests hold the kernels to the rest of common/.
_WITHOUT_SHARED = ("tests/ch10",)


def main() -> int:
    """Print an option for each folder to leave out, one a line, and on stderr why."""
    parser = Arguments(description=__doc__)
    parser.add_argument("root", nargs="?", type=Path, default=PROJECT_ROOT, help="a git checkout")
    root = parser.parse_args().root
    tag = last_tag(root)
    if not tag:
        print("all slow tests run: found no tag to compare with", file=sys.stderr)
        return 0
    changed = changed_since(root, tag)
    for folder in folders_of(root):
        if not is_touched(folder, changed):
            print(f"{OPTION}={folder}")
            print(f"left out: slow tests of {folder}; none of {', '.join(read_by(folder))} changed since {tag}", file=sys.stderr)
    return 0


def last_tag(root: Path) -> str:
    """The last tag that HEAD has in its history; "" where there is none, or git cannot tell."""
    found = subprocess.run([*_git(root), "describe", "--tags", "--abbrev=0", "HEAD"], capture_output=True, text=True, check=False)
    return found.stdout.strip() if found.returncode == 0 else ""


def changed_since(root: Path, tag: str) -> frozenset[str]:
    """Paths of files that differ from `tag`, are new, are gone or have moved, committed or not."""
    commands = (["diff", "--name-only", "--no-renames", "-z", tag, "--"], ["ls-files", "--others", "--exclude-standard", "-z"])
    printed = [subprocess.run([*_git(root), *command], capture_output=True, text=True, check=True).stdout for command in commands]
    return frozenset(filter(None, "".join(printed).split("\0")))


def folders_of(root: Path) -> Iterator[str]:
    """The folders of tests that have slow ones which may be left out; those of other folders always run."""
    for path in sorted((root / "tests").iterdir()):
        slow = any("mark.slow" in file.read_text(encoding="utf-8") for file in path.glob("test_*.py"))
        if slow and re.fullmatch(r"ch\d\d|emulation", path.name):
            yield f"tests/{path.name}"


def read_by(folder: str) -> tuple[str, ...]:
    """What the slow tests of `folder` read, as beginnings of paths."""
    own = (f"{Path(folder).name}/",) if folder != "tests/emulation" else ()
    shared = () if folder in _WITHOUT_SHARED else _SHARED
    return tuple(dict.fromkeys((*own, f"{folder}/", *_READS.get(folder, ()), *shared)))


def is_touched(folder: str, changed: Iterable[str]) -> bool:
    """Whether one of the `changed` files may decide a slow test of `folder`."""
    return any(path.startswith((*read_by(folder), *_ALL)) for path in changed)


def _git(root: Path) -> tuple[str, ...]:
    return ("git", "--no-optional-locks", "-C", str(root))


if __name__ == "__main__":
    exit_with(main)

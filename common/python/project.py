"""Where this project lies, and a root of somebody's own: apart from the settings, so that a listing need not load what validates them."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path

from common.python.errors import BenchmarkError

PROJECT_ROOT = Path(__file__).resolve().parents[2]
COMMAND = "benchmark_cli"
_PROJECT_FILE = "pyproject.toml"
IS_CHECKOUT = (PROJECT_ROOT / _PROJECT_FILE).is_file()
"""False of an installed wheel: pairs, tests and git's history are not beside it."""


def default_root() -> Path:
    """Where targets are looked for if nobody says where: in this checkout, or where the user of an installed wheel stands.

    Raises BenchmarkError if that user stands in a folder that somebody has removed.
    """
    if IS_CHECKOUT:
        return PROJECT_ROOT
    try:
        return Path.cwd()
    except FileNotFoundError as error:
        raise BenchmarkError("found no working directory, as somebody has removed it; expected one, or --root") from error


def program() -> str:
    """How this command line was called, to be pasted: by paths, as what `setup.sh` puts on the PATH is not on that of its caller."""
    called = Path(sys.argv[0])
    if called.stem != COMMAND:
        return COMMAND  # another program called the harness
    words = [called] if called.suffix == "" else [Path(sys.executable), called]
    try:
        here = Path.cwd()
    except FileNotFoundError:  # somebody has removed it
        here = Path(os.devnull)
    return shlex.join(str(word.relative_to(here) if word.is_relative_to(here) else word) for word in words)


def import_folders(root: Path) -> tuple[Path, ...]:
    """The folders in which Python finds the package, or the project, that a root of pairs outside this project is a part of.

    The folder around the outermost package; and of a project, whose pyproject.toml lies in the root, beside it, or beside that package,
    the folder and its `src`.
    """
    root = root.resolve()
    if root.is_relative_to(PROJECT_ROOT):
        return ()
    around = root
    while around != around.parent and any((each / "__init__.py").is_file() for each in (around, around.parent)):
        around = around.parent
    projects = [each for each in (root, root.parent, around) if (each / _PROJECT_FILE).is_file()]
    found = [*([around] if around != root else []), *(folder for each in projects for folder in (each, each / "src") if folder.is_dir())]
    return tuple(dict.fromkeys(found))

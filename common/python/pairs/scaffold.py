"""`new`: a pair's three files from templates, which pass as they are and say what to put where."""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory

from common.python.errors import BenchmarkError
from common.python.pairs.discovery import Tree, canonical, discover
from common.python.project import PROJECT_ROOT
from common.python.storage import write_whole

PAGE = PROJECT_ROOT / "common/docs/writing-a-pair.md"
"""Where it is said what a pair's files may hold."""

_TEMPLATES = Path(__file__).parent / "templates"
_TARGET = re.compile(r"^(?P<directory>\w[\w-]*(/\w[\w-]*)?):(?P<name>\w+)$")
_OF_A_SIDE = re.compile(r"^(baseline|optimized|library)_|_(baseline|optimized)$")
_LONGEST = 255  # bytes of a file's name
_FILES = {
    False: {"workload": "workload.py", "baseline": "baseline.py", "optimized": "optimized.py"},
    True: {"workload": "workload.py", "baseline": "baseline.cu", "optimized": "optimized.cu"},
}


def new_pair(tree: Tree, target: str, *, cuda: bool) -> tuple[Path, ...]:
    """Write the files of `target` under the tree's root, and their paths.

    Raises BenchmarkError if the name is not `directory:name`, would not be found under that name, or if any of the files exists.
    """
    match = _TARGET.match(canonical(target))
    if match is None or _OF_A_SIDE.search(match["name"]):
        raise BenchmarkError(f"new {target}: found {_unfit_in(target)}")
    folder = (
        tree.root
        if match["directory"] == tree.root.name and not (tree.root / match["directory"]).is_dir()
        else tree.root / match["directory"]
    )
    if len(f"optimized_{match['name']}.py".encode()) > _LONGEST or any(len(part.encode()) > _LONGEST for part in folder.parts):
        raise BenchmarkError(f"new {target}: found a name too long for a file; expected a shorter one")
    paths = {role: folder / f"{role}_{match['name']}{Path(template).suffix}" for role, template in _FILES[cuda].items()}
    taken = [path for role in paths for suffix in (".py", ".cu") if (path := folder / f"{role}_{match['name']}{suffix}").exists()]
    if taken:
        raise BenchmarkError(f"new {target}: {taken[0]} exists; expected a name that no file has")
    if not _is_found(tree, canonical(target), list(paths.values())):
        raise BenchmarkError(f"new {target}: targets are not looked for in {folder}; expected a chapter's folder, or labs/<name>")
    for role, template in _FILES[cuda].items():
        write_whole(paths[role], (_TEMPLATES / template).read_text(encoding="utf-8"))
    return tuple(paths.values())


def _unfit_in(target: str) -> str:
    """What of `target` is no directory:name, and what was expected there."""
    directory, colon, name = target.partition(":")
    if not (colon and directory and name):
        return "no directory:name; expected for example ch07:row_sum"
    if unfit := re.search(r"[^\w/-]|^-|(?<=/)-", directory):
        return f"{unfit[0]!r} in the directory {directory!r}; expected letters, digits, _ and -, which is not first, as in ch07:row_sum"
    if unfit := re.search(r"\W", name):
        return f"{unfit[0]!r} in the name {name!r}; expected letters, digits and _, as in ch07:row_sum"
    if not re.fullmatch(r"[^/]+(/[^/]+)?", directory):
        return f"the directory {directory!r}; expected one folder, or two as in labs/moe:row_sum"
    return f"the name {name!r}, which is of a side; expected that of the pair, as in ch07:row_sum, without baseline or optimized"


def _is_found(tree: Tree, target: str, paths: list[Path]) -> bool:
    """Whether discovery would find the pair, tried on empty files in another place."""
    with TemporaryDirectory() as place:
        root = Path(place) / tree.root.name
        for path in paths:
            empty = root / path.relative_to(tree.root)
            empty.parent.mkdir(parents=True, exist_ok=True)
            empty.touch()
        return target in [pair.target for pair in discover(root).pairs]

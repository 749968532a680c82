"""Which files of a tree a file reads: those that it imports or includes in quotes, and those that these read."""

from __future__ import annotations

import ast
import functools
import os.path
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

CODE = (".py", ".cu", ".cuh")

_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


class Reads:
    """What files below `root` read, by text alone: nothing is imported, and a path is relative to `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._looked_for = functools.cache(self._look)

    def of(self, *paths: str) -> frozenset[str]:
        """The `paths`, and each path at which one of them, or what it reads, looks for a file.

        A path at which nothing lies counts: a file that is gone was read from there, and one that is new will be.
        """
        seen, left = set(paths), list(paths)
        while left:
            for path in self._looked_for(left.pop()) - seen:
                seen.add(path)
                left.append(path)
        return frozenset(seen)

    def _look(self, path: str) -> frozenset[str]:
        file = self.root / path
        if file.suffix not in CODE or not file.is_file():
            return frozenset()
        text, folder = file.read_text(encoding="utf-8"), PurePosixPath(path).parent
        if file.suffix != ".py":
            places = (place for name in _INCLUDE.findall(text) for place in (folder / name, PurePosixPath(name)))
        else:
            places = (place for module in _imported(ast.parse(text), folder) for place in _places(module, folder))
        return frozenset(os.path.normpath(place) for place in places)


def _imported(node: ast.AST, folder: PurePosixPath) -> Iterator[str]:
    """The modules that `node` imports, wherever in it, but for those that only a type checker sees."""
    if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
        children: list[ast.AST] = [*node.orelse]
    else:
        children = [*ast.iter_child_nodes(node)]
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        parts = [*folder.parts[: len(folder.parts) - node.level + 1]] if node.level else []
        module = ".".join([*parts, *filter(None, [node.module])])
        yield from (f"{module}.{alias.name}".strip(".") for alias in node.names)  # its last part may be a module, and may be none
    for child in children:
        yield from _imported(child, folder)


def _places(module: str, folder: PurePosixPath) -> Iterator[PurePosixPath]:
    """Where the parts of a dotted name would lie, from the root and, as a side finds it, beside the file."""
    parts = module.split(".")
    for start in (PurePosixPath(), folder):
        for count in range(1, len(parts) + 1):
            place = start.joinpath(*parts[:count])
            yield place.with_suffix(".py")
            yield place / "__init__.py"

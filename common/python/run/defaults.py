"""Defaults of flags, from `[tool.benchmark_cli]` of the nearest pyproject.toml at or above the working directory."""

from __future__ import annotations

import difflib
import tomllib
from pathlib import Path
from typing import Any

from common.python.errors import BenchmarkError

TABLE = "tool.benchmark_cli"
_SUITE = ("run", "verify")
# key: the commands that have such a flag. What writes, or answers for one run alone, has no default.
_COMMANDS: dict[str, tuple[str, ...]] = {
    "root": (*_SUITE, "list-targets", "list-techniques", "show", "new", "history"),
    "targets": _SUITE,
    "device": _SUITE,
    "timeout-multiplier": _SUITE,
    "suite-timeout": _SUITE,
    "verbose": _SUITE,
    "gate": ("run", "compare"),
    "require-expectations": ("run",),
    "fail-on": ("run",),
    "wait": ("run",),
}


def defaults_here(folder: Path) -> dict[str, dict[str, Any]]:
    """The defaults of each command's parameters, as stated for somebody who stands in `folder`; nothing where nobody stated any.

    A `root` is as seen from the file. Raises BenchmarkError, naming the file, for what cannot be read and for a key that is no such flag.
    """
    path = next((each / "pyproject.toml" for each in (folder, *folder.parents) if (each / "pyproject.toml").is_file()), None)
    if path is None:
        return {}
    try:
        stated = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {}).get("benchmark_cli", {})
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BenchmarkError(f"{path}: {error}; expected TOML, of which [{TABLE}] has defaults of flags") from error
    if not isinstance(stated, dict):
        raise BenchmarkError(f"{path}: found {TABLE} = {stated!r}; expected a table, [{TABLE}]")
    found: dict[str, dict[str, Any]] = {}
    for key, value in stated.items():
        if key not in _COMMANDS:
            near = difflib.get_close_matches(key, _COMMANDS, n=1)
            raise BenchmarkError(f"{path}: found {key!r} in [{TABLE}]; expected {near[0] if near else 'one of ' + ', '.join(_COMMANDS)}")
        for command in _COMMANDS[key]:
            found.setdefault(command, {})[key.replace("-", "_")] = _meant(path, key, value)
    return found


def _meant(path: Path, key: str, value: object) -> object:
    """A value as the command line would have it."""
    if key == "root":
        return str((path.parent / _text(path, key, value)).resolve())
    return [value] if key == "targets" and isinstance(value, str) else value


def _text(path: Path, key: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise BenchmarkError(f"{path}: found {key} = {value!r} in [{TABLE}]; expected a folder, in quotes")
    return value

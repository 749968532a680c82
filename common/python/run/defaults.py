"""Defaults of flags, from `[tool.benchmark_cli]` of the nearest pyproject.toml at or above the working directory."""

from __future__ import annotations

import difflib
import math
import tomllib
from pathlib import Path
from typing import Any

from common.python.errors import BenchmarkError

TABLE = "tool.benchmark_cli"
ROOT_HELP = "Folder that holds the targets. Default: this project; of an installed package, the working directory."
_SUITE = ("run", "verify")
_LONG = 80
# key: the commands that have such a flag. What writes, or answers for one run alone, has no default. `_KINDS` has what each value is.
_COMMANDS: dict[str, tuple[str, ...]] = {
    "root": (*_SUITE, "list-targets", "list-techniques", "show", "new", "history", "first-run"),
    "targets": (*_SUITE, "first-run"),
    "device": (*_SUITE, "first-run"),
    "timeout-multiplier": _SUITE,
    "suite-timeout": _SUITE,
    "verbose": _SUITE,
    "gate": ("run", "compare"),
    "require-expectations": ("run",),
    "fail-on": ("run",),
    "wait": ("run",),
}
_KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("root", "device", "fail-on"), (str,)),
    **dict.fromkeys(("timeout-multiplier", "suite-timeout", "gate", "wait"), (int, float)),
    **dict.fromkeys(("verbose", "require-expectations"), (bool,)),
    "targets": (str, list),
}
_NAMES = {str: "a text, in quotes", int: "a number", bool: "true or false", list: "a list of texts"}


def working_folder() -> Path | None:
    """Where the user stands; None if somebody has removed it."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def stated_in(folder: Path | None) -> Path | None:
    """The nearest pyproject.toml at `folder` or above it."""
    return folder and next((each / "pyproject.toml" for each in (folder, *folder.parents) if (each / "pyproject.toml").is_file()), None)


def defaults_here(folder: Path | None) -> dict[str, dict[str, Any]]:
    """The defaults of each command's parameters, as stated for somebody who stands in `folder`; nothing where nobody stated any.

    A `root` is as seen from the file. Raises BenchmarkError, naming the file, for what cannot be read and for a key that is no such flag.
    """
    path = stated_in(folder)
    if path is None:
        return {}
    try:
        tools = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {})
    except (OSError, ValueError, RecursionError) as error:  # ValueError: no UTF-8, no TOML, or more digits than Python converts
        raise BenchmarkError(f"{path}: {error}; expected TOML, of which [{TABLE}] has defaults of flags") from error
    if not isinstance(tools, dict):
        raise BenchmarkError(f"{path}: found tool = {_short(tools)}; expected a table, [{TABLE}]")
    stated = tools.get("benchmark_cli", {})
    if not isinstance(stated, dict):
        raise BenchmarkError(f"{path}: found {TABLE} = {_short(stated)}; expected a table, [{TABLE}]")
    found: dict[str, dict[str, Any]] = {}
    for key, value in stated.items():
        if key not in _COMMANDS:
            near = difflib.get_close_matches(key, _COMMANDS, n=1)
            raise BenchmarkError(f"{path}: found {key!r} in [{TABLE}]; expected {near[0] if near else 'one of ' + ', '.join(_COMMANDS)}")
        for command in _COMMANDS[key]:
            found.setdefault(command, {})[key.replace("-", "_")] = _meant(path, key, value)
    return found


def _meant(path: Path, key: str, value: object) -> object:
    """A value as the command line would have it. Raises BenchmarkError for one of another kind than its flag takes."""
    kinds = _KINDS[key]
    if (isinstance(value, bool) and bool not in kinds) or not isinstance(value, kinds) or _is_no_name(value):
        expected = "a folder, in quotes" if key == "root" else " or ".join(_NAMES[kind] for kind in kinds if kind is not float)
        raise BenchmarkError(f"{path}: found {key} = {_short(value)} in [{TABLE}]; expected {expected}")
    if isinstance(value, float) and not math.isfinite(value):
        raise BenchmarkError(f"{path}: found {key} = {value} in [{TABLE}]; expected a finite number")
    if key == "root":
        return str(path.parent / str(value))
    if key == "targets":
        return [value] if isinstance(value, str) else [_text(path, key, each) for each in value]  # type: ignore[attr-defined]
    return value


def _text(path: Path, key: str, value: object) -> str:
    if not isinstance(value, str) or _is_no_name(value):
        raise BenchmarkError(f"{path}: found {_short(value)} among {key} in [{TABLE}]; expected a text, in quotes")
    return value


def _is_no_name(value: object) -> bool:
    """Whether a text is empty, or has a zero byte, which no file's name has."""
    return isinstance(value, str) and (not value or "\0" in value)


def _short(value: object) -> str:
    """A value as Python writes it, of a long one its begin."""
    text = repr(value)
    return text if len(text) <= _LONG else f"{text[:_LONG]}..."

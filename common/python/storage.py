"""Documents on disk: each is written whole and renamed into place, and is checked against its schema when it is read."""

from __future__ import annotations

import errno
import json
import os
import re
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from common.python.errors import BenchmarkError
from common.python.project import PROJECT_ROOT
from common.python.results import SCHEMA_VERSION, Document

ARTIFACTS = PROJECT_ROOT / "artifacts"
_NUMBER_LIST = re.compile(r"\[\n\s*(-?\d[\s\d.,eE+-]*?)\s*\]")
D = TypeVar("D", bound=Document)


def runs_folder(root: Path) -> Path:
    """Where the folders of runs go if nobody says where: in this project, or in a root outside it."""
    return ARTIFACTS if root.resolve().is_relative_to(PROJECT_ROOT) else root.resolve() / ARTIFACTS.name


def write_whole(path: Path, text: str | bytes) -> None:
    """Write `path`, so that a reader sees the old file or the new one, never a part; its folder is made if it is not there.

    Raises BenchmarkError, naming the file and what the system said; no temporary file is left behind. What is there and is no file, such
    as a folder or a device, stays.
    """
    try:
        if path.exists() and not path.is_file():
            raise BenchmarkError(f"{path}: found no file; expected the name of one, or of nothing yet")
        temporary = path.with_name(f".{path.name}.{os.getpid()}")
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("wb") as file:
                file.write(text.encode() if isinstance(text, str) else text)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise BenchmarkError(
            f"{path}: {error.strerror}; expected to write {len(text)} {'characters' if isinstance(text, str) else 'bytes'} there"
        ) from error


def keep_room(path: Path, size: int) -> None:
    """Take `size` bytes of the disk as the file `path`, to be had again by removing it. Raises BenchmarkError if there is no room."""
    try:
        with path.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, size)
    except OSError as error:
        path.unlink(missing_ok=True)
        raise BenchmarkError(f"{path}: {error.strerror}; expected room for {size} bytes") from error


def make_folder(path: Path, instead: str = "") -> None:
    """Make the folder `path`, and those above it.

    Raises BenchmarkError if it cannot be made, read or written; `instead` is how to name another, as `, or --flag`.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise BenchmarkError(f"{path} is not a folder; expected a folder, or nothing there yet{instead}") from error
    except OSError as error:
        raise BenchmarkError(f"{path}: {error.strerror}; expected a folder that can be made{instead}") from error
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise BenchmarkError(f"{path} cannot be read and written; expected a folder that can{instead}")


def make_runs_folder(path: Path) -> None:
    """Make the folder of runs. In one that was not there git is told to ignore everything, or a commit would not stay clean.

    Raises BenchmarkError if it cannot be made, read or written.
    """
    is_new = not path.exists()
    make_folder(path, instead=", or --artifacts-dir")
    if is_new:
        write_whole(path / ".gitignore", "*\n")


def fills_disk(error: BenchmarkError) -> bool:
    """Whether `error` is of a file for which there was no room."""
    cause = error.__cause__
    return isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def document_text(document: Document) -> str:
    """`document` as JSON, indented, but with every list of numbers on one line: a row has hundreds of samples."""
    # A newline inside a JSON string is escaped, so a bracket followed by a real one is never part of a string.
    return _NUMBER_LIST.sub(lambda match: f"[{' '.join(match[1].split())}]", document.model_dump_json(indent=2)) + "\n"


def read_document(path: Path, kind: type[D]) -> D:
    """The document of type `kind` in the file at `path`. Raises BenchmarkError naming the file, what was found and what was expected."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise BenchmarkError(f"{path} is missing; expected the {path.name} of a run") from error
    except OSError as error:
        raise BenchmarkError(f"{path}: {error.strerror}; expected a readable file") from error
    except UnicodeDecodeError as error:
        raise BenchmarkError(f"{path}: byte {error.start} is not UTF-8; expected a whole JSON document") from error
    except json.JSONDecodeError as error:
        raise BenchmarkError(f"{path}: line {error.lineno}, column {error.colno}: {error.msg}; expected a whole JSON document") from error
    except RecursionError as error:
        raise BenchmarkError(f"{path}: lists or objects nested too deep to read; expected a whole JSON document") from error
    except ValueError as error:  # of more digits than Python converts
        raise BenchmarkError(f"{path}: found an integer too long to read; expected a whole JSON document") from error
    if not isinstance(content, dict) or type(version := content.get("schema_version")) is not int or version < 1:
        raise BenchmarkError(f"{path}: no schema_version; expected a document of schema version 1 to {SCHEMA_VERSION}")
    if version > SCHEMA_VERSION:
        raise BenchmarkError(f"{path}: schema version {version}; expected at most {SCHEMA_VERSION}: a newer release wrote it")
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(str(part) for part in first["loc"]) or "the document"
        found = first["msg"].removeprefix("Value error, ")
        raise BenchmarkError(f"{path}: {key}: {found}; expected schema version {version} as this commit has it") from error

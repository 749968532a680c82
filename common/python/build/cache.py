"""Files of a cache, which say themselves whether they are whole: what is damaged counts as absent, and what cannot be written is left."""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from pathlib import Path


def keep(path: Path, text: str) -> None:
    """Write `text` to `path` for `kept` to find. A cache that cannot be written costs time and nothing else: then nothing is raised."""
    content = text.encode()
    with contextlib.suppress(OSError):
        _write(path, f"{_digest(content)}\n".encode() + content)


def kept(path: Path) -> str | None:
    """The text that was kept at `path`; None if it is not there, or not as it was written."""
    try:
        digest, _, content = path.read_bytes().partition(b"\n")
        return content.decode() if digest == _digest(content).encode() else None
    except (OSError, UnicodeDecodeError):
        return None


def keep_by_content(file: Path, folder: Path) -> Path:
    """A copy of `file` in `folder` whose name is a hash of its content, or `file` itself where none can be made."""
    try:
        content = file.read_bytes()
        path = folder / f"{_digest(content)}{file.suffix}"
        if not is_as_named(path):
            _write(path, content)
    except OSError:
        return file
    return path


def is_as_named(path: Path) -> bool:
    """Whether the file that `keep_by_content` made at `path` is there, and whole."""
    try:
        return path.stem == _digest(path.read_bytes())
    except OSError:
        return False


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:32]


def _write(path: Path, content: bytes) -> None:
    """Under another name first, so that nobody ever reads a part of it."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        with contextlib.suppress(OSError):  # a folder that is none, say
            temporary.unlink(missing_ok=True)

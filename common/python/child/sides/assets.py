"""Files of the tree that inputs may come from: named in a registry with the digest that their bytes must have."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from common.python.errors import BenchmarkError
from common.python.project import PROJECT_ROOT

ASSETS = PROJECT_ROOT / "common" / "models" / "assets"
REGISTRY = "assets.json"


@dataclass(frozen=True)
class Asset:
    """A file's bytes and their SHA-256."""

    data: bytes
    digest: str


def read_asset(name: str, folder: Path = ASSETS) -> Asset:
    """The asset `name` of the registry in `folder`. Raises BenchmarkError for a name, a file or a digest that is not as registered."""
    registry = folder / REGISTRY
    entries = json.loads(registry.read_text()) if registry.exists() else {}
    if name not in entries:
        raise BenchmarkError(f"{registry}: found no asset {name!r}; expected one of {', '.join(sorted(entries)) or 'none'}")
    path = folder / entries[name]["file"]
    if not path.is_file():
        raise BenchmarkError(f"{path}: found no file; expected asset {name!r} with SHA-256 {entries[name]['sha256']}")
    data = path.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    if digest != entries[name]["sha256"]:
        raise BenchmarkError(f"{path}: found SHA-256 {digest}; expected {entries[name]['sha256']}, which {REGISTRY} has")
    return Asset(data, digest)

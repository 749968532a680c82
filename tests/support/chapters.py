"""The modules that the sides of a chapter share, for tests of their own."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def modules_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """`import shared_x` takes the one in `folder`, whatever other chapters have under that name; all is as before afterwards."""
    before = {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith("shared_")}
    monkeypatch.syspath_prepend(str(folder))
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name.startswith("shared_")]:
            del sys.modules[name]
        sys.modules.update(before)

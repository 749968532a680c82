"""A pair on disk, and what a run holds while it profiles it, for tests of what is run under tools: stand-ins for these are on PATH."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from common.python.processes.messages import BuildDone
from common.python.session.planning import Plan
from common.python.settings import Settings
from tests.support.commands import write_pair
from tests.support.plans import a_plan

STAND_INS = Path(__file__).with_name("stand_ins")


def put_on_path(patch: pytest.MonkeyPatch, *tools: str, folder: Path, mode: str = "", program: str = "skip") -> None:
    """Have these stand-ins, and no other tool of their kind, found, and behave as `mode` says; `program` "run" runs what they are given."""
    folder.mkdir()
    for name in (*tools, "program.py"):
        (folder / name).symlink_to(STAND_INS / name)
    patch.setenv("PATH", f"{folder}{os.pathsep}/usr/bin{os.pathsep}/bin")
    patch.setenv("STAND_IN", mode)
    patch.setenv("PROGRAM", program)


def a_pair(folder: Path, **changes: Any) -> Plan:
    """The plan of demo:double, whose files are there, timed at n = 512."""
    sides = {name: changes.pop(name) for name in ("baseline", "optimized") if name in changes}
    write_pair(folder, "demo:double", **sides)
    return a_plan(folder / "demo", "double", timed={"default": {"n": 512}}, **changes)


def a_session(folder: Path, *, limit_s: float = 60.0, cache_bytes: int = 0, **choices: Any) -> Any:
    """What profiling asks of a Session; its files go to `folder`. The ceilings are kept of a GPU with an L2 of `cache_bytes`, if any."""
    numbers = itertools.count(7)

    def logs(target: str, side: str) -> Path:
        path = folder / target.replace(":", "_").replace("/", "_") / side
        path.mkdir(parents=True, exist_ok=True)
        return path

    inputs = folder / "inputs"
    inputs.mkdir(parents=True)
    return SimpleNamespace(
        settings=Settings(**choices),
        logs=logs,
        limit_s=lambda _: limit_s,
        builds={},
        past=None,
        ceilings={"cuda": SimpleNamespace(cache_bytes=cache_bytes)} if cache_bytes else {},
        new_seed=lambda: next(numbers),
        inputs_folder=inputs,
        caches_of=lambda plan, side: "",
        tell=lambda _: None,
    )


def built(library: Path) -> BuildDone:
    """A build of a .cu side whose library is there."""
    library.write_bytes(b"")
    return BuildDone(nonce="", library=str(library), seconds=1.0, cached=False, log="")

"""pytest's fixture `compare`, and `--gpu-expectations FILE`, which holds each comparison to what it found when it was stored."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from common.python.api.result import Result


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--gpu-expectations`."""
    parser.addoption(
        "--gpu-expectations",
        metavar="FILE",
        help="speedups that `compare` is held to, by test and device; those that FILE lacks are stored in it",
    )


@pytest.fixture(name="compare")
def compare_fixture(request: pytest.FixtureRequest) -> Callable[..., Result]:
    """`common.compare`; with --gpu-expectations, a speedup that has become lower than the stored one fails the test."""
    from common.python.api.compare import compare  # torch, which no other test needs to wait for

    chosen: str | None = request.config.getoption("--gpu-expectations")
    count = 0

    def asked(*functions: Any, **choices: Any) -> Result:
        nonlocal count
        result = compare(*functions, **choices)
        count += 1
        if chosen and result.speedup:
            told = _hold(Path(chosen), f"{request.node.nodeid} {count} on {_place(result)}", result)
            if told:
                pytest.fail(told, pytrace=False)
        return result

    return asked


def _place(result: Result) -> str:
    if result.device == "cpu":
        return "the CPU"
    import torch

    return torch.cuda.get_device_name()


def _hold(path: Path, key: str, result: Result) -> str:
    """What is wrong with a speedup beside the one stored as `key`, or nothing; one that is not stored yet is stored."""
    from common.python.storage import write_whole

    assert result.speedup is not None, "only of two functions"
    stored: dict[str, dict[str, float]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    now = result.speedup
    if key not in stored:
        stored[key] = {"estimate": now.estimate, "low": now.low, "high": now.high}
        write_whole(path, json.dumps(dict(sorted(stored.items())), indent=2) + "\n")
        return ""
    least = stored[key]["low"] / (1 + now.band_percent / 100)
    if now.high >= least:
        return ""
    told = f"REGRESSED: {result!r}; expected {least:.3g}x or more, as {path} has it of {key}"
    return "\n".join([told, *(f"  note: {caveat}" for caveat in result.caveats)])

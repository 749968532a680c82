"""What there is to run and what may be claimed, by the files' text alone: fast, as nothing of a pair is imported."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from common.python.machine.needs import FEATURES, ON_GPU
from common.python.pairs.claims import techniques
from common.python.pairs.directives import first_line
from common.python.pairs.discovery import LIBRARY, Pair, Tree

_NEEDS = re.compile(r"^\s*(?://|#)\s*needs:(?!:)\s*(.*?)\s*$", re.MULTILINE)
_CLAIM = re.compile(r"^\s*(?://|#)\s*(?:proves|has):\s*(?:(?:not|more|fewer) )?(\w+)", re.MULTILINE)


@dataclass(frozen=True)
class Listed:
    """One target: its idea, the first line of its optimized side, what its files need, and what this machine lacks of that, or ""."""

    pair: Pair
    idea: str
    needs: tuple[str, ...]
    lacks: str


@dataclass(frozen=True)
class ListedTechnique:
    """A name that `proves:` may use: the instruction that proves it, the architectures that have it, and the first target with it."""

    name: str
    instruction: str
    architectures: tuple[str, ...]
    first: str


def gpu_is_here() -> bool:
    """Whether a driver has made a device file for a GPU; nothing is asked of it."""
    return any(Path("/dev").glob("nvidia[0-9]*")) or Path("/dev/dxg").exists()


def listed(pairs: Iterable[Pair], *, gpu: bool) -> list[Listed]:
    """What each pair is about and whether it can run here; a file that cannot be read has no idea, and its run will tell."""
    found = []
    for pair in pairs:
        own = [path for side, path in pair.sides.items() if side != LIBRARY]  # without its library a pair runs all the same
        texts = {path: _text(path) for path in (pair.workload, *own)}
        needs = tuple(dict.fromkeys(need.strip() for text in texts.values() for line in _NEEDS.findall(text) for need in line.split(",")))
        found.append(Listed(pair, first_line(texts[pair.sides["optimized"]]), needs, _lacking(own, needs, gpu)))
    return found


def _lacking(sides: Iterable[Path], needs: tuple[str, ...], gpu: bool) -> str:
    """What stands in the way, as far as file names and `needs:` tell; which features a GPU that is here has, a run finds out."""
    on_gpu = [need for need in needs if need in FEATURES or need.partition(" ")[0] in ON_GPU]
    asked = f"needs {', '.join(on_gpu)}" if on_gpu else ""
    if gpu:
        return asked
    return "needs a GPU" + asked.replace("needs", " with", 1) if on_gpu or any(path.suffix == ".cu" for path in sides) else ""


def listed_techniques(tree: Tree) -> list[ListedTechnique]:
    """Every technique by name, with the first target of `tree`, in reading order, that claims it."""
    first: dict[str, str] = {}
    for pair in tree.pairs:
        for path in pair.sides.values():
            for name in _CLAIM.findall(_text(path)):
                first.setdefault(name, pair.target)
    return [
        ListedTechnique(each.name, each.pattern.pattern, each.architectures, first.get(each.name, "")) for each in techniques().values()
    ]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""

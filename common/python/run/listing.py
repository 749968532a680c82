"""What there is to run and what may be claimed, by the files' text alone: fast, as nothing of a pair is imported."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from common.python.errors import BenchmarkError
from common.python.machine.needs import FEATURES, ON_GPU
from common.python.pairs.claims import techniques
from common.python.pairs.directives import first_line
from common.python.pairs.discovery import LIBRARY, Pair, Tree
from common.python.pairs.goals import OF_A_GPU
from common.python.pairs.suggestions import about, spelt
from common.python.project import import_folders

_NEEDS = re.compile(r"^\s*(?://|#)\s*needs:(?!:)\s*(.*?)\s*$", re.MULTILINE)
_CLAIM = re.compile(r"^\s*(?://|#)\s*(?:proves|has):\s*(?:(?:not|more|fewer) )?(\w+)", re.MULTILINE)
_IMPORT = re.compile(r"^\s*(?:from|import) ([\w.]+)", re.MULTILINE)
_MODULE_ENDS = (".py", "/__init__.py")
_CPU_SHAPE = re.compile(r"""\bcpu_at["']?\s*[=:]\s*(\S+)""")
_GOAL = re.compile(r"""\bgoal=["'](\w+)["']""")
_RANKS = re.compile(r"\branks=\(([\d, ]+)\)")
_TRITON = re.compile(r"^\s*(?:from|import) triton\b", re.MULTILINE)

TIMED, CHECKED = "timed here", "checked here, timed on a GPU"


@dataclass(frozen=True)
class Listed:
    """One target: its idea, the first line of its optimized side, what its files need, and what this machine lacks of that, or "".

    `here` is what a run does here: it times the pair, only checks it, or cannot run it, and why.
    """

    pair: Pair
    idea: str
    needs: tuple[str, ...]
    lacks: str
    here: str


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


def listed(pairs: Iterable[Pair], *, gpu: bool, root: Path | None = None) -> list[Listed]:
    """What each pair of `root` is about and whether it can run here; a file that cannot be read has no idea, and its run will tell."""
    found = []
    folders = import_folders(root) if root else ()
    for pair in pairs:
        own = [path for side, path in pair.sides.items() if side != LIBRARY]  # without its library a pair runs all the same
        texts = {path: _text(path) for path in (pair.workload, *own)}
        needs = tuple(dict.fromkeys(need.strip() for text in texts.values() for line in _NEEDS.findall(text) for need in line.split(",")))
        lacks = _lacking(own, needs, gpu)
        usual = TIMED if gpu or (not lacks and _is_timed_on_a_cpu(pair.workload, own, folders)) else CHECKED
        here = next((broken for path, text in texts.items() if (broken := _broken(path, text))), lacks or usual)
        found.append(Listed(pair, first_line(texts[pair.sides["optimized"]]), needs, lacks, here))
    return found


def about_words(words: Sequence[str], targets: Sequence[Listed]) -> list[Listed]:
    """Those of `targets` with every one of `words`, or what the field also calls it, in their name or idea.

    Raises BenchmarkError if there is none.
    """
    parts = [part for word in words for part in spelt(word).split("_") if part]
    texts = [spelt(f"{each.pair.target} {each.idea}") for each in targets]
    found = [each for each, text in zip(targets, texts, strict=True) if all(part in text or about(part, text) for part in parts)]
    if targets and not found:
        raise BenchmarkError(f"{' '.join(words)!r}: found no target and no idea with it; expected other words, or none, to list all")
    return found


def _is_timed_on_a_cpu(workload: Path, sides: Iterable[Path], folders: Sequence[Path]) -> bool:
    """Whether the files, or those that they import, give a shape for CPUs, and nothing but a GPU's work or figures to time."""
    if any(_TRITON.search(text) for side in sides for text in _with_imports(side, folders)):
        return False  # Triton's interpreter says nothing of speed
    texts = list(_with_imports(workload, folders))
    shapes, goals, ranks = (_nearest(stated, texts) for stated in (_CPU_SHAPE, _GOAL, _RANKS))
    fewest = min((int(count) for each in ranks for count in each.split(",") if count.strip()), default=1)
    has_shape = any(not shape.startswith("None") for shape in shapes)
    return has_shape and not set(OF_A_GPU) & set(goals) and fewest <= len(os.sched_getaffinity(0))


def _nearest(stated: re.Pattern[str], texts: Iterable[str]) -> list[str]:
    """What the first of `texts` that states it says."""
    return next((found for text in texts if (found := stated.findall(text))), [])


def _with_imports(path: Path, folders: Sequence[Path]) -> Iterator[str]:
    """The text of a Python file, and of those beside it or in `folders` that it imports, and they import."""
    files = [path] if path.suffix == ".py" else []
    for file in files:  # grows while it is walked
        text = _text(file)
        for name in dict.fromkeys(_IMPORT.findall(text)):
            module = name.lstrip(".").replace(".", "/")
            places = (folder / f"{module}{end}" for folder in (file.parent, *folders) for end in _MODULE_ENDS)
            found = next((place for place in places if place.is_file()), None)
            if found and found not in files:
                files.append(found)
        yield text


def _broken(path: Path, text: str) -> str:
    """Where a Python file is none, and why; "" where it is."""
    try:
        if path.suffix == ".py":
            ast.parse(text)
    except SyntaxError as error:
        return f"{path.name}:{error.lineno or 1}: {error.msg}"
    return ""


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

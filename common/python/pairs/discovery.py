"""Pairs by file name alone: what a tree holds, the steps of its ladders, and which of its files look like a pair but are not one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from common.python.errors import BenchmarkError
from common.python.pairs.directives import ladder_steps, read_directives

HALVES = ("baseline", "optimized")
LIBRARY = "library"
SIDES = (*HALVES, LIBRARY)

_NOT_SCANNED = frozenset({"tests", "artifacts", "common", "tools", "build"})
_FILE = re.compile(r"(workload(?=_.+\.py$)|baseline|optimized|library)_(.+)\.(?:py|cu)")
_READS_AS_HALF = re.compile(r"(?:baseline|optimized)_.+|.+_(?:baseline|optimized)")


@dataclass(frozen=True)
class Pair:
    """One target: a workload, its baseline, one optimized side, and the library's answer where there is one.

    target     `ch07:transpose`, `labs/moe_cuda:decode_kernel`
    directory  what stands before the colon: the folder relative to the root, or the root's own name
    name       what stands after it: the stem of the optimized side
    sides      absolute path of each side, in the order baseline, optimized, library
    """

    target: str
    directory: str
    name: str
    workload: Path
    sides: Mapping[str, Path]


@dataclass(frozen=True)
class Tree:
    """The pairs under `root`, sorted by directory and name, and for each directory a sentence per file that is wrong in it."""

    root: Path
    pairs: tuple[Pair, ...]
    problems: Mapping[str, tuple[str, ...]]

    @property
    def directories(self) -> tuple[str, ...]:
        """Every folder with a pair or a problem, sorted."""
        return tuple(sorted({pair.directory for pair in self.pairs} | set(self.problems)))


def discover(root: Path) -> Tree:
    """The pairs in `root`, its folders and theirs; no file is opened but a workload without a baseline beside it, or with variants.

    Raises BenchmarkError if `root` is not a folder.
    """
    root = resolved(root)
    if not is_folder(root):
        raise BenchmarkError(f"--root {root}: found no such folder; expected one that holds pairs")
    folders = [_Folder(root, label, path) for label, path in _folders(root)]
    pairs = [pair for folder in folders for pair in folder.pairs()]
    borrowed = {pair.sides["baseline"] for pair in pairs}
    problems: dict[str, tuple[str, ...]] = {}
    for label, sentence in [*(wrong for folder in folders for wrong in folder.wrong(borrowed)), *_namesakes(folders)]:
        problems[label] = (*problems.get(label, ()), sentence)
    return Tree(root, tuple(sorted(pairs, key=lambda pair: (pair.directory, pair.name))), problems)


def is_folder(path: Path) -> bool:
    """Whether `path` is a folder; what cannot be the name of one, as it is too long, is none."""
    try:
        return path.is_dir()
    except OSError:
        return False


def resolved(root: Path) -> Path:
    """The absolute path of `root`, which may be nowhere yet. Raises BenchmarkError if it cannot be the name of a folder."""
    try:
        return root.resolve()
    except (OSError, RuntimeError, ValueError) as error:  # no working directory, links in a circle, a zero byte
        raise BenchmarkError(f"--root {root}: found no such folder; expected one that holds pairs") from error


def canonical(target: str) -> str:
    """`target` with `ch7` spelt `ch07`, and without the slash that a shell's completion leaves after a folder."""
    directory, colon, name = target.partition(":")
    return re.sub(r"^ch(\d)(?=/|$)", r"ch0\1", directory.rstrip("/")) + colon + name


def _folders(root: Path) -> Iterator[tuple[str, Path]]:
    """The folders that may hold pairs, with their labels: the root, root/* and root/*/*."""
    yield root.name, root
    for outer in _subfolders(root):
        if outer.name not in _NOT_SCANNED:
            yield outer.name, outer
            for inner in _subfolders(outer):
                yield f"{outer.name}/{inner.name}", inner


def _subfolders(path: Path) -> list[Path]:
    try:
        with os.scandir(path) as entries:
            names = [entry.name for entry in entries if entry.is_dir()]
    except OSError:
        return []  # _Folder reads the same folder and says so
    return [path / name for name in sorted(names) if not name.startswith(".") and name != "__pycache__"]


def _is_text(name: str) -> bool:
    """Whether a name on disk is UTF-8; of another, Python keeps the bytes as characters that no document can hold."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _role_and_stem(name: str) -> tuple[str, str] | None:
    match = _FILE.fullmatch(name)
    return None if match is None else (match[1], match[2])


def _owner(stem: str, workloads: Iterable[str]) -> str | None:
    """The longest workload stem that `stem` is, or is a variant of."""
    return max((owner for owner in workloads if f"{stem}_".startswith(f"{owner}_")), key=len, default=None)


class _Folder:
    """One folder: its files by role and stem, and a sentence for each that is in the way of a pair."""

    def __init__(self, root: Path, label: str, path: Path) -> None:
        self.root = root
        self.label = label
        self.path = path
        self.problems: list[str] = []
        self.files: dict[str, dict[str, Path]] = {role: {} for role in ("workload", *SIDES)}
        try:
            with os.scandir(path) as entries:
                named = sorted((entry.name, key) for entry in entries if (key := _role_and_stem(entry.name)) and entry.is_file())
        except OSError as error:
            self.problems.append(f"{label}: found {error.strerror}; expected a folder that can be read")
            return
        for name, (role, stem) in named:
            if not _is_text(f"{label}/{name}"):
                self.problems.append(f"{label!a}/{name!a}: found a name that is not UTF-8; expected UTF-8, as documents hold it")
                continue
            first = self.files[role].setdefault(stem, path / name)
            if first.name != name:
                self._problem(name, f"found {first.name} beside it", "one of the two")

    def _problem(self, file: str, found: str, expected: str) -> None:
        self.problems.append(f"{self.label}/{file}: {found}; expected {expected}")

    def pairs(self) -> list[Pair]:
        """A pair for every optimized side with a workload and a baseline; what is missing becomes a problem."""
        workloads, optimized = self.files["workload"], self.files["optimized"]
        for stem, path in (optimized | workloads).items():
            if _READS_AS_HALF.fullmatch(stem):
                self._problem(path.name, f"found the name {stem}, which reads as one half of a pair", "another name")
        variants: dict[str, list[str]] = {stem: [] for stem in workloads}
        for stem in optimized:
            if owner := _owner(stem, workloads):
                variants[owner].append(stem)
        found = []
        for stem, workload in workloads.items():
            variants[stem] = self._without_rungs(variants[stem], stem, workload)
            if not variants[stem]:
                self._problem(workload.name, "found no optimized side", f"{self.label}/optimized_{stem}.py or .cu")
            if baseline := self._baseline(stem, workload):
                found += [self._pair(name, stem, baseline) for name in variants[stem]]
        return found

    def _without_rungs(self, names: list[str], stem: str, workload: Path) -> list[str]:
        """The variants that are targets: a step of the workload's ladder is timed in the ladder's row, and has none of its own."""
        if all(name == stem for name in names):
            return names
        try:
            steps = ladder_steps(workload)
        except BenchmarkError as error:
            self.problems.append(str(error))
            return names
        rungs = {Path(os.path.normpath(self.root / step)) for step in steps if "/" in step}
        optimized = self.files["optimized"]
        return [name for name in names if name == stem or (name.removeprefix(f"{stem}_") not in steps and optimized[name] not in rungs)]

    def _pair(self, name: str, stem: str, baseline: Path) -> Pair:
        sides = {"baseline": baseline, "optimized": self.files["optimized"][name]}
        if library := self.files["library"].get(stem):
            sides["library"] = library
        return Pair(f"{self.label}:{name}", self.label, name, self.files["workload"][stem], sides)

    def _baseline(self, stem: str, workload: Path) -> Path | None:
        """The baseline beside the workload, or the one it borrows; None, and a problem, if there is neither."""
        if own := self.files["baseline"].get(stem):
            return own
        try:
            named = read_directives(workload).baseline
        except BenchmarkError as error:
            self.problems.append(str(error))
            return None
        if not named:
            expected = f"{self.label}/baseline_{stem}.py or .cu, or a line `# baseline: <path from the root>`"
            self._problem(workload.name, "found no baseline", expected)
            return None
        lender = Path(os.path.normpath(self.root / named))
        key = _role_and_stem(lender.name)
        if key and key[0] in SIDES and lender.is_relative_to(self.root) and lender.is_file():
            return lender
        self._problem(workload.name, f"found `baseline: {named}`", "the path, from the root, of a side that exists")
        return None

    def wrong(self, borrowed: set[Path]) -> Iterator[tuple[str, str]]:
        """Label and sentence of every problem, orphans last: sides without a workload that are no one's baseline either."""
        for sentence in self.problems:
            yield self.label, sentence
        for role in SIDES:
            for stem, path in self.files[role].items():
                owner = _owner(stem, self.files["workload"]) if role == "optimized" else self.files["workload"].get(stem)
                if owner is None and path not in borrowed:
                    yield self.label, f"{self.label}/{path.name}: found no workload for it; expected {self.label}/workload_{stem}.py"


def _namesakes(folders: Iterable[_Folder]) -> Iterator[tuple[str, str]]:
    """Label and problem of a folder that targets call the same as another: `ch7` beside `ch07`, a root and its child of that name."""
    called: dict[str, _Folder] = {}
    for folder in folders:
        if any(folder.files.values()):
            first = called.setdefault(canonical(folder.label), folder)
            if first is not folder:
                yield folder.label, f"{folder.path}: found {first.path}, which targets call by the same name; expected one of the two"


def with_rungs(pair: Pair, root: Path) -> Pair:
    """`pair` with a side for each step of its workload's ladder, between baseline and optimized; a variant has no rungs.

    A step is a name, for `optimized_<pair>_<name>` beside the workload, or the path from `root` of a side, which may be a baseline.
    Raises BenchmarkError for a step without a file, and for one whose name a side of the pair has.
    """
    stem = pair.workload.stem.removeprefix("workload_")
    if pair.name != stem:
        return pair
    rungs: dict[str, Path] = {}
    for step in ladder_steps(pair.workload):
        name = Path(step).stem.removeprefix("optimized_")
        places = (
            [root / step] if "/" in step else [pair.workload.with_name(f"optimized_{stem}_{step}{suffix}") for suffix in (".cu", ".py")]
        )
        found = next((place for place in places if place.is_file()), None)
        if found is None:
            raise BenchmarkError(f"{pair.workload}: found no file of the ladder's step {step!r}; expected {places[0].relative_to(root)}")
        if name in rungs or name in SIDES:
            raise BenchmarkError(f"{pair.workload}: found the ladder's step {step!r} twice, or named as a side; expected a name of its own")
        rungs[name] = found
    first, *others = pair.sides.items()
    return replace(pair, sides=dict([first, *rungs.items(), *others])) if rungs else pair

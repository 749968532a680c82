"""Which costly tests a check may leave out: those that read nothing that changed since a commit that passed. Prints options for pytest.

That commit is the last tag, or the one that .ci/passed names if fewer commits lie behind it. Tests that cost little always run.
"""

from __future__ import annotations

import functools
import re
import subprocess
import sys
import tomllib
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from common.python.command import Arguments, exit_with
from common.python.pairs.discovery import Pair, discover, with_rungs
from tools.checks.reads import CODE, Reads

PROJECT_ROOT = Path(__file__).resolve().parents[2]

PASSED = ".ci/passed"
TURNS = 4  # each pair, and each cheat as a candidate, is tested at least once in so many landings

# How everything is tested: what one of them decides, nobody can tell.
_ALL = (".ci/run", "constraints.txt", "pyproject.toml", "setup.sh", "tests/conftest.py", "tools/checks/changed.py", "tools/checks/reads.py")
_OF_OTHER_TOOLS = ("importlinter", "mypy", "ruff")  # tables of pyproject.toml that no test reads
_PLACES = re.compile(r"(ch\d\d|labs|common|tests|tools)/.+")
# What is read by tests that always run, and by no other.
_DOCUMENTS = re.compile(
    r"(?!tests/)(?:.*/)?(?:[^/]+\.md|expectations_[^/]+\.json)|common/(?:docs|schemas)/.*|tools/(?:campaign/.*\.plan|checks/.*\.tsv)"
    r"|\.github/.*|\.ci/passed|\.ci/latest|\.clang-format|\.git-blame-ignore-revs|\.gitignore|CITATION\.cff|LICENSE"
)

# What runs a side and judges it, and what reads claims in machine code.
_RUNS = ("common/python/child/", "common/python/processes/")
_READ_CLAIMS = ("common/python/pairs/claims.py", "common/python/pairs/directives.py")
_COMPARES = ("common/python/child/sides/", "common/python/pairs/workload.py")
_PROVES = ("common/python/build/", "common/python/prove/", "common/python/child/sides/", *_READ_CLAIMS)

_RUN_BY_TESTS = ("common/cuda/", "common/models/", "common/serving/", "common/python/build/", *_RUNS)
_SHARED = (*_RUN_BY_TESTS, "tests/emulation/")
_READS = {
    "tests/adversaries": ("common/", "tools/"),
    "tests/ch09": (*_SHARED, "tests/ch07/", "tests/ch10/"),
    "tests/ch10": ("ch09/", "tests/ch07/", "tests/ch09/", "common/cuda/", "tests/emulation/"),
    "tests/emulation": (*_SHARED, "common/python/pairs/templates/"),
    "tests/serving": ("common/", "tools/"),
    "tests/tools/cli": ("common/", "tools/", "tests/outside/"),
}
# Proofs of kernels, which take many minutes: cheap tests hold the kernels to the rest of common/.
_KERNELS = ("tests/ch10",)
# Tests that cost minutes and are not slow one by one, each with what decides it: files, or one test of a file.
_CORE = ("common/", "tools/", "tests/common/", "tests/support/", "tests/outside/")
_COMMANDS = ("common/", "tools/", "tests/tools/cli/", "tests/support/", "tests/outside/")
COSTLY = {
    "tests/common/python/api/test_compare.py": (*_CORE, "ch01/"),
    "tests/common/python/api/test_outside.py": _CORE,
    "tests/common/python/api/test_pytest_plugin.py": _CORE,
    "tests/common/python/child/test_distributed.py": _CORE,
    "tests/common/python/profile/test_outside_profiler.py": _CORE,
    "tests/common/python/profile/test_runner.py": _CORE,
    "tests/common/python/run/test_compiled_sides.py": (*_CORE, "tests/compiled/", "ch07/"),
    "tests/common/python/run/test_peak.py": _CORE,
    "tests/common/python/run/test_suite.py": _CORE,
    "tests/tools/checks/test_front_page.py::test_the_front_pages_python_runs": (*_CORE, "README.md"),
    "tests/tools/cli/test_benchmark_cli.py": _COMMANDS,
    "tests/tools/cli/test_gated_ladders.py": _COMMANDS,
    "tests/tools/cli/test_gated_runs.py": _COMMANDS,
    "tests/tools/cli/test_malformed_lines.py": (*_COMMANDS, "ch07/"),
    "tests/tools/cli/test_own_root.py": _COMMANDS,
}
# Cheats once more, each offered to ch20's generator: who judges them is the same as in tests/adversaries, where all run. They take turns.
CANDIDATES = "tests/ch20/test_adversaries_as_candidates.py"
_CHEATS = "tests/adversaries/cheats"
_JUDGES_CANDIDATES = ("ch20/", "tests/ch20/", "tests/adversaries/", "common/python/processes/sandbox.py")


def main() -> int:
    """Print an option for each test, or folder of tests, to leave out, one a line, and on stderr why."""
    parser = Arguments(description=__doc__)
    parser.add_argument("root", nargs="?", type=Path, default=PROJECT_ROOT, help="a git checkout")
    root = parser.parse_args().root
    base = base_of(root)
    changed = changed_since(root, base.commit) if base.commit else frozenset[str]()
    reason = why_all(base, changed)
    if reason:
        print(f"all tests run: {reason}", file=sys.stderr)
        return 0
    for option, note in (*folders_left_out(root, changed), *candidates_left_out(root, changed), *pairs_left_out(root, changed)):
        print("\n".join(option))
        print(f"left out: {note} since {base.name}", file=sys.stderr)
    return 0


@dataclass(frozen=True)
class Base:
    """The commit to compare with, and how it is called; without one, `name` says why there is none."""

    commit: str
    name: str


def base_of(root: Path) -> Base:
    """The nearest of the last tag and the commit in .ci/passed among those that HEAD has in its history."""
    if _git(root, "rev-parse", "--is-shallow-repository") != "false":
        return Base("", "found no whole git history; expected a clone that is not shallow")
    tag = _git(root, "describe", "--tags", "--abbrev=0", "HEAD")
    found = [Base(_git(root, "rev-parse", f"{tag}^{{commit}}"), tag)] if tag else []
    if (root / PASSED).is_file():
        named = (root / PASSED).read_text(encoding="utf-8").partition("#")[0].strip()
        commit = _git(root, "rev-parse", "--verify", "--quiet", f"{named}^{{commit}}") if re.fullmatch("[0-9a-f]{40}", named) else ""
        if not commit:
            return Base("", f"{PASSED}: found {named!r}; expected the hash of a commit, of 40 digits")
        if _git(root, "merge-base", commit, "HEAD") == commit:
            found.append(Base(commit, f"{commit[:8]}, of {PASSED}"))
    if not found:
        return Base("", f"found no tag to compare with, and in {PASSED} no commit of this history")
    return min(found, key=lambda base: int(_git(root, "rev-list", "--count", f"{base.commit}..HEAD")))


def changed_since(root: Path, commit: str) -> frozenset[str]:
    """Paths of files that differ from `commit`, are new, are gone or have moved, committed or not."""
    commands = (["diff", "--name-only", "--no-renames", "-z", commit, "--"], ["ls-files", "--others", "--exclude-standard", "-z"])
    printed = [subprocess.run(_command(root, *command), capture_output=True, text=True, check=True).stdout for command in commands]
    paths = frozenset(filter(None, "".join(printed).split("\0")))
    return paths - {"pyproject.toml"} if "pyproject.toml" in paths and _same_for_tests(root, commit) else paths


def why_all(base: Base, changed: frozenset[str]) -> str:
    """Why nothing may be left out; "" where something may be."""
    if not base.commit:
        return base.name
    for path in sorted(changed):
        if path.startswith(_ALL) or not (_PLACES.fullmatch(path) or _DOCUMENTS.fullmatch(path)):
            return f"{path} changed since {base.name}"
    return ""


def folders_left_out(root: Path, changed: Iterable[str]) -> Iterator[tuple[list[str], str]]:
    """An option for the slow tests of each folder, and for other costly ones, that read nothing of what `changed`; and the reason."""
    telling = [path for path in changed if not _DOCUMENTS.fullmatch(path)]
    reads = Reads(root)
    for folder in folders_of(root):
        if not is_touched(reads, folder, telling):
            yield [f"--without-slow={folder}"], f"slow tests of {folder}; none of {', '.join(read_by(folder))} changed"
    for test, read in COSTLY.items():
        if (root / test.partition("::")[0]).is_file() and not any(path.startswith(read) for path in telling) and not {*changed} & {*read}:
            yield [f"--deselect={test}"], f"{test}; none of {', '.join(read)} changed"


def folders_of(root: Path) -> Iterator[str]:
    """The folders of tests that have slow ones which may be left out; those of other folders always run."""
    for path in sorted((root / "tests").iterdir()):
        folder = f"tests/{path.name}"
        if (folder in _READS or re.fullmatch(r"ch\d\d", path.name)) and _has_slow(path):
            yield folder
    yield from (folder for folder in _READS if folder.count("/") > 1 and _has_slow(root / folder))


def _has_slow(folder: Path) -> bool:
    return any("mark.slow" in file.read_text(encoding="utf-8") for file in folder.glob("test_*.py"))


def read_by(folder: str) -> tuple[str, ...]:
    """What the slow tests of `folder` read beside what they import, as beginnings of paths."""
    chapter = PurePosixPath(folder).name
    own = (f"{chapter}/",) if re.fullmatch(r"ch\d\d", chapter) else ()
    return tuple(dict.fromkeys((*own, f"{folder}/", *_READS.get(folder, _SHARED))))


def is_touched(reads: Reads, folder: str, changed: Iterable[str]) -> bool:
    """Whether one of the `changed` files may decide a slow test of `folder`."""
    own = [path for place in read_by(folder)[:2] if (reads.root / place).is_dir() for path in sorted((reads.root / place).rglob("*.py"))]
    imported = reads.of(*(path.relative_to(reads.root).as_posix() for path in own))
    if folder in _KERNELS:
        imported = frozenset(path for path in imported if path.startswith("tests/"))
    return any(path.startswith((*read_by(folder), "tests/support/stand_ins/")) or path in imported for path in changed)


def candidates_left_out(root: Path, changed: Iterable[str]) -> Iterator[tuple[list[str], str]]:
    """Options that leave out the cheats as candidates whose turn it is not, unless a file of `changed` is theirs or their judge's."""
    telling = [path for path in changed if not _DOCUMENTS.fullmatch(path)]
    cheats = [path.stem.removeprefix("optimized_") for path in sorted((root / _CHEATS).glob("optimized_*.py"))]
    if not (root / CANDIDATES).is_file() or not is_touched(Reads(root), str(PurePosixPath(CANDIDATES).parent), telling):
        return  # all are left out with the slow tests of their folder
    if any(path.startswith(_JUDGES_CANDIDATES) for path in telling):
        return
    turn = turn_of(root)
    options = [f"--deselect={CANDIDATES}::test_an_adversary_as_a_candidate[{name}]" for name in cheats if not _is_turn(name, turn)]
    note = f"{len(options)} of {len(cheats)} cheats as candidates; one of {TURNS} runs in turn (turn {turn + 1})"
    yield options, f"{note}; none of {', '.join(_JUDGES_CANDIDATES)} changed"


def turn_of(root: Path) -> int:
    """Counts landings: each names the commit that passed before it, or has a tag."""
    tags = _git(root, "tag", "--merged", "HEAD").split()
    return (int(_git(root, "rev-list", "--count", "HEAD", "--", PASSED) or 0) + len(tags)) % TURNS


def _is_turn(name: str, turn: int) -> bool:
    return zlib.crc32(name.encode()) % TURNS == turn


@dataclass(frozen=True)
class Check:
    """A costly test of tests/pairs that runs for each pair, or each side of one, that has a side of a `kind`.

    test    its id as far as the pair's target, which {} stands for
    kinds   suffixes of the sides that it looks at
    shared  beginnings of paths of what it runs for every pair, beside what its file imports from tests/
    code    whether it looks at no more than a pair's CUDA C++, and at what a workload's own text says
    """

    test: str
    kinds: tuple[str, ...]
    shared: tuple[str, ...]
    code: bool = False

    @property
    def file(self) -> str:
        """Where it is."""
        return self.test.partition("::")[0]


CHECKS = (
    Check("tests/pairs/test_right_on_cpu.py::test_python_side[{}-", (".py",), _RUNS),
    Check("tests/pairs/test_right_on_cpu.py::test_cuda_side[{}-", (".cu",), ("common/python/child/sides/", "tests/emulation/")),
    Check(
        "tests/pairs/test_architectures.py::test_side_compiles_wherever_its_needs_are_met[{}-",
        (".cu",),
        ("common/python/build/", "common/python/machine/needs.py", "common/python/pairs/directives.py"),
        code=True,
    ),
    Check("tests/pairs/test_claims.py::test_claims_hold_in_machine_code[{}]", (".py", ".cu"), _PROVES),
    Check("tests/pairs/test_teeth.py::test_tolerance_refuses_wrong_answers[{}]", (".py", ".cu"), _COMPARES),
    Check("tests/pairs/test_teeth.py::test_tolerance_refuses_wrong_answers[{}-optimized]", (".py", ".cu"), _COMPARES),
)


class Selection:
    """Which pairs a set of changed files may affect, by check, and whose turn it is."""

    def __init__(self, root: Path, changed: Iterable[str]) -> None:
        self.root = root
        self.changed = frozenset(path for path in changed if not _DOCUMENTS.fullmatch(path))
        self.pairs = [with_rungs(pair, root) for pair in discover(root).pairs]
        self._reads = Reads(root)
        self._read = functools.cache(self._read_of)
        self._for_all = functools.cache(self._touches_all)

    @functools.cached_property
    def turn(self) -> int:
        """Whose turn it is."""
        return turn_of(self.root)

    def runs(self, check: Check, pair: Pair) -> bool:
        """Whether `check` must run for `pair`."""
        if not self.changed:
            return False
        return self._for_all(check) or _is_turn(pair.target, self.turn) or bool(self.changed & self.affecting(check, pair))

    def affecting(self, check: Check, pair: Pair) -> frozenset[str]:
        """The changed files that may decide what `check` says of `pair`."""
        read = self._read(pair.target, code=check.code)
        return frozenset(path for path in self.changed if path in read or self._may_be_read(path, pair, read))

    def _touches_all(self, check: Check) -> bool:
        files = self._reads.of(check.file, "tests/pairs/conftest.py")
        imported = {path for path in files if path.startswith("tests/") and not path.startswith("tests/emulation/")}
        return any(path.startswith(check.shared) or path in imported for path in self.changed)

    def _read_of(self, target: str, *, code: bool) -> frozenset[str]:
        (pair,) = [pair for pair in self.pairs if pair.target == target]
        sides = [self._path(side) for side in pair.sides.values() if not code or side.suffix == ".cu"]
        workload = self._path(pair.workload)
        return self._reads.of(*sides) | {workload} if code else self._reads.of(workload, *sides)

    def _may_be_read(self, path: str, pair: Pair, read: frozenset[str]) -> bool:
        """Whether `pair` may read a file that nothing imports: data beside it, or beside a module in common/ that it imports."""
        folder = f"{PurePosixPath(path).parent}/"
        if path.startswith(("ch", "labs/")):
            return path not in self._read_by_any and self._path(pair.workload).startswith(folder)
        if PurePosixPath(path).suffix in CODE or not path.startswith("common/") or path.startswith("common/python/"):
            return False
        room = "/".join(path.split("/")[:2]) if path.count("/") > 1 else "common"
        return any(each.startswith(f"{room}/") for each in read)

    @functools.cached_property
    def _read_by_any(self) -> frozenset[str]:
        return frozenset().union(*(self._read(pair.target, code=False) for pair in self.pairs))

    def _path(self, file: Path) -> str:
        return file.relative_to(self.root.resolve()).as_posix()


def pairs_left_out(root: Path, changed: Iterable[str]) -> Iterator[tuple[list[str], str]]:
    """Options that leave out the checks of pairs which nothing that `changed` can affect, and in words how many."""
    if discover(root).problems:
        return  # which fail the tests of all pairs
    selection = Selection(root, changed)
    options, left, total = [], set[str](), 0
    for check in CHECKS:
        for pair in selection.pairs:
            if not any(side.suffix in check.kinds for side in pair.sides.values()):
                continue
            total += 1
            if not selection.runs(check, pair):
                options.append(f"--deselect={check.test.format(pair.target)}")
                left.add(pair.target)
    if options:
        turn = f"; a pair of {TURNS} runs in turn (turn {selection.turn + 1})" if selection.changed else ""
        some = f"{len(options)} of {total} costly checks of pairs, in {len(left)} of {len(selection.pairs)} pairs"
        yield options, f"{some}{turn}; nothing that they read changed"


def _same_for_tests(root: Path, commit: str) -> bool:
    """Whether pyproject.toml says the same as at `commit` but for what linters read."""
    file = root / "pyproject.toml"
    if not file.is_file():
        return False
    texts = (_git(root, "show", f"{commit}:pyproject.toml"), file.read_text(encoding="utf-8"))
    then, now = (tomllib.loads(text) for text in texts)
    for table in (then, now):
        table["tool"] = {name: value for name, value in table.get("tool", {}).items() if name not in _OF_OTHER_TOOLS}
    return then == now


def _git(root: Path, *arguments: str) -> str:
    """What git says; "" where it fails."""
    done = subprocess.run(_command(root, *arguments), capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""


def _command(root: Path, *arguments: str) -> tuple[str, ...]:
    return ("git", "--no-optional-locks", "-C", str(root), *arguments)


if __name__ == "__main__":
    exit_with(main)

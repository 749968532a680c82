"""What a file's text is: whether two sides are the same code, whether one was edited, and what it was at another revision."""

from __future__ import annotations

import ast
import hashlib
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePath

from common.python.errors import BenchmarkError
from common.python.pairs.discovery import canonical, discover
from common.python.pairs.targets import Selection
from common.python.results import BASELINE, OPTIMIZED

_CUDA_TOKEN = re.compile(r'(?P<kept>"(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)


def same_code(first: Path, second: Path) -> bool:
    """Whether two files differ in comments, docstrings and layout alone.

    What they share by import or include is taken to be the same, so files of different folders that share something are not.
    """
    shares = first.parent != second.parent and "shared_" in first.read_text(encoding="utf-8")
    return first.suffix == second.suffix and not shares and _essence(first) == _essence(second)


def digest_of(*paths: Path) -> str:
    """The SHA-256 of the files' contents in the given order, as hex; names and paths do not count."""
    return hashlib.sha256(b"".join(hashlib.sha256(path.read_bytes()).digest() for path in paths)).hexdigest()


def cubins_of(side: Path) -> list[Path]:
    """The machine code that a Python side brings: the files `<side>.sm_*.cubin` beside it, which a compiler elsewhere made."""
    return sorted(side.parent.glob(f"{side.stem}.sm_*.cubin")) if side.suffix == ".py" else []


def parsed(path: Path) -> ast.Module:
    """The Python file at `path` as a tree. Raises BenchmarkError, naming file and line, if it is none."""
    try:
        return ast.parse(path.read_text(encoding="utf-8"))
    except SyntaxError as error:
        place = f"{path}:{error.lineno}" if error.lineno else str(path)
        raise BenchmarkError(f"{place}: {error.msg}; expected Python") from error
    except (OSError, ValueError, RecursionError, MemoryError) as error:  # zero bytes, or nested deeper than the parser goes
        raise BenchmarkError(f"{path}: {str(error) or 'nested too deep'}; expected Python") from error


def with_imports(path: Path, folders: Sequence[Path] = ()) -> list[Path]:
    """The Python file at `path` and the files beside it, or in `folders`, that it imports, and they import, each once.

    Raises BenchmarkError, naming file and line, for one that is no Python.
    """
    files = [path]
    for file in files:  # grows while it is walked
        for name in imported_by(parsed(file)):
            found = next((folder / name for folder in (file.parent, path.parent, *folders) if (folder / name).is_file()), None)
            if found and found not in files:
                files.append(found)
    return files


def imported_by(tree: ast.Module) -> Iterator[str]:
    """The paths that the imports of a Python file may mean, as seen from its folder, or from one where modules are looked for."""
    for node in ast.walk(tree):
        modules: list[str] = []
        if isinstance(node, ast.Import):
            modules = [alias.name.replace(".", "/") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            up, named = "../" * (node.level - 1), (node.module or "").replace(".", "/")
            modules = [f"{up}{named}"] if named else []
            modules += [f"{up}{named}/{alias.name}" if named else f"{up}{alias.name}" for alias in node.names]
        for module in modules:
            above = [str(each) for each in PurePath(module).parents if each.name not in ("", "..")]
            yield from (f"{module}.py", *(f"{package}/__init__.py" for package in (module, *above)))


def _essence(path: Path) -> str:
    if path.suffix == ".py":
        return ast.unparse(_without_docstrings(parsed(path)))
    return " ".join(_CUDA_TOKEN.sub(lambda match: match["kept"] or " ", path.read_text(encoding="utf-8")).split())


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return tree


@contextmanager
def checkout(root: Path, revision: str) -> Iterator[Path]:
    """What lies below `root` as git has it at `revision`, in a folder of the same name that is gone afterwards.

    git's own files are only read, so nothing is left behind in them however the block ends.
    Raises BenchmarkError, naming the flag, if `root` is in no git checkout or that has no such revision with anything below `root`.
    """
    found = git_in("--against", root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    if found.returncode:
        raise BenchmarkError(
            f"--against {revision}: found no such revision in {root}; expected a commit, a branch or a tag of its checkout"
        )
    with tempfile.TemporaryDirectory(prefix="against_") as folder:
        past, archive = Path(folder, root.resolve().name), Path(folder, "archive.tar")
        packed = git_in("--against", root, "archive", "--format=tar", f"--output={archive}", found.stdout.strip())
        if packed.returncode:
            raise BenchmarkError(f"--against {revision}: found nothing of {root} in it ({packed.stderr.strip()}); expected its pairs")
        with tarfile.open(archive) as content:
            content.extractall(past, filter="data")
        archive.unlink()
        yield past


def against(selections: Sequence[Selection], past: Path) -> tuple[list[Selection], list[str]]:
    """Each selected pair with its optimized side of `past`, a checkout, as the baseline; and a sentence for each that had none there.

    Raises BenchmarkError for a half, and if none is left.
    """
    then = {canonical(pair.target): pair.sides[OPTIMIZED] for pair in discover(past).pairs}
    chosen, notes = [], []
    for selection in selections:
        pair = selection.pair
        if selection.is_half:
            raise BenchmarkError(f"--against: found one half of {pair.target}; expected the pair, whose optimized side is compared")
        if canonical(pair.target) not in then:
            notes.append(f"{pair.target} did not exist at that revision: it is left out")
            continue
        sides = {BASELINE: then[canonical(pair.target)], OPTIMIZED: pair.sides[OPTIMIZED]}
        chosen.append(Selection(replace(pair, sides=sides), tuple(sides)))
    if not chosen:
        raise BenchmarkError(f"--against: found none of {len(notes)} targets at that revision; expected at least one")
    return chosen, notes


def git_in(flag: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What git says in `folder`, of which it changes nothing. Raises BenchmarkError, naming the flag that asks, if there is no git."""
    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    except FileNotFoundError as error:
        raise BenchmarkError(f"{flag}: found no git; expected it on the PATH") from error

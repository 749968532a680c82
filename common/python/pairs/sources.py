"""What a file's text is: whether two files are the same code, and whether one was edited; and git, asked of a folder."""

from __future__ import annotations

import ast
import hashlib
import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

from common.python.errors import BenchmarkError

_CUDA_TOKEN = re.compile(r'(?P<kept>"(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)


def same_code(first: Path, second: Path) -> bool:
    """Whether two files differ in comments, docstrings and layout alone.

    What they share by import or include is taken to be the same, so files of different folders that share something are not.
    """
    shares = first.parent != second.parent and "shared_" in first.read_text(encoding="utf-8")
    return first.suffix == second.suffix and not shares and _essence(first) == _essence(second)


def same_files(first: Path, second: Path) -> bool:
    """Whether both files are there and differ at most in comments, docstrings and layout, whatever they import or include."""
    try:
        if first.suffix != second.suffix or first.suffix not in (".py", ".cu", ".cuh"):
            return first.read_bytes() == second.read_bytes()
        return _essence(first) == _essence(second)
    except (OSError, BenchmarkError, UnicodeDecodeError):
        return False


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


def text_at(root: Path, commit: str, file: str) -> str | None:
    """The text of a file of `root` as git has it at a commit; None where it has none. Raises UnicodeDecodeError if it is no text."""
    if not re.fullmatch("[0-9a-f]{40,}", commit):
        return None
    try:
        found = git_in("--against", root, "cat-file", "blob", f"{commit}:./{file}")
    except BenchmarkError:
        return None
    return None if found.returncode else found.stdout


def git_in(flag: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What git says in `folder`, of which it changes nothing. Raises BenchmarkError, naming the flag that asks, if there is no git."""
    command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    except FileNotFoundError as error:
        raise BenchmarkError(f"{flag}: found no git; expected it on the PATH") from error

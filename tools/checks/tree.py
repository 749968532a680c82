"""The house rules, checked: budgets, names, text, and what an example may not hold. Exit 1 where one is broken."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from common.python.command import Arguments, exit_with
from tools.checks.patterns import check_patterns
from tools.checks.source import Finding, Source, sources_of

PROJECT_ROOT = Path(__file__).resolve().parents[2]

TOP_LEVEL = frozenset(
    (
        *("pyproject.toml", "constraints.txt", "README.md", "CHANGELOG.md", "CONTRIBUTING.md", "CITATION.cff", "setup.sh", "LICENSE"),
        *("common", "tools", "labs", "tests", "artifacts"),
    )
)
CHAPTER = re.compile(r"ch(0[1-9]|1\d|20)")

MODULE_LINES = 600
PYTHON_EXAMPLE_LINES = 60
CUDA_EXAMPLE_LINES = 120
LONG_EXAMPLE_LINES = 250  # a lab, or a kernel that drives the tensor cores itself
FUNCTION_LINES = 50
PARAMETERS = 6
LINE_LENGTH = 140

_COUNTED_SUFFIXES = (".py", ".cu", ".cuh", ".sh")
_IDEA = re.compile(r'(r?"""|# |// )\S')
_DIRECTIVE = re.compile(r"(# |// )[a-z]+:\s")
_MAY_CATCH_ALL = re.compile(r"common/python/(processes/fork_server|child/server)\.py|tests/adversaries/.*")
_CATCH_ALL = frozenset(("Exception", "BaseException"))


def findings_in(root: Path) -> list[Finding]:
    """Everything below `root` that breaks a house rule, by file and line."""
    sources = sources_of(root)
    found = [*_top_level(sources), *check_patterns(sources)]
    for source in sources:
        found += _text(source)
        if source.is_python:
            found += _python(source)
    return sorted(found, key=lambda finding: (finding.path, finding.line, finding.rule))


def _top_level(sources: Iterable[Source]) -> Iterator[Finding]:
    new: dict[str, Source] = {}
    for source in sources:
        entry = source.parts[0]
        if entry not in TOP_LEVEL and not entry.startswith(".") and not CHAPTER.fullmatch(entry):
            new.setdefault(entry, source)
    for entry, source in new.items():
        yield source.finding(1, "top level", entry, f"one of {', '.join(sorted(TOP_LEVEL))} or ch01 to ch20")


def _text(source: Source) -> Iterator[Finding]:
    """The rules that any file keeps, and any code."""
    for part in source.parts:
        if {"util", "utils"} & set(PurePosixPath(part).stem.lower().split("_")):
            yield source.finding(1, "names", part, "a name that says what it is for")
    if not source.name.endswith(_COUNTED_SUFFIXES):
        return
    lines = source.text.splitlines()
    for number, line in enumerate(lines, start=1):
        if len(line) > LINE_LENGTH:
            yield source.finding(number, "line length", f"{len(line)} characters", f"at most {LINE_LENGTH}")
    if not (source.is_python or source.is_cuda):
        return
    first = lines[0] if lines else ""
    if not _IDEA.match(first) or _DIRECTIVE.match(first):
        yield source.finding(1, "idea", f"`{first}`", "a first line, docstring or comment, that states the idea of the file")
    budget = _line_budget(source)
    if len(lines) > budget:
        yield source.finding(budget + 1, "budget", f"{len(lines)} lines", f"at most {budget}")


def _line_budget(source: Source) -> int:
    if not source.is_example:
        return MODULE_LINES
    if source.is_lab or source.uses_tensor_cores:
        return LONG_EXAMPLE_LINES
    return PYTHON_EXAMPLE_LINES if source.is_python else CUDA_EXAMPLE_LINES


def _python(source: Source) -> Iterator[Finding]:
    """The rules that need the syntax of a Python file."""
    try:
        tree = source.syntax
    except SyntaxError as error:
        yield source.finding(error.lineno or 1, "syntax", error.msg, "Python that parses")
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not source.is_example:
            yield from _function(source, node)
        elif isinstance(node, ast.ExceptHandler | ast.Call) and not _MAY_CATCH_ALL.fullmatch(source.path):
            yield from _broad_except(source, node)
        if isinstance(node, ast.Call) and source.is_ours and ast.unparse(node.func) == "getattr" and len(node.args) == 3:
            yield source.finding(node.lineno, "getattr default", f"`{ast.unparse(node)}`", "an attribute that is always there")


def _function(source: Source, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[Finding]:
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    if lines > FUNCTION_LINES:
        yield source.finding(node.lineno, "budget", f"{lines} lines in {node.name}", f"at most {FUNCTION_LINES}")
    arguments = node.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    names += [argument.arg for argument in (arguments.vararg, arguments.kwarg) if argument]
    counted = [name for name in names if name not in ("self", "cls")]
    if source.is_ours and len(counted) > PARAMETERS:
        yield source.finding(node.lineno, "budget", f"{len(counted)} parameters of {node.name}", f"at most {PARAMETERS}")


def _broad_except(source: Source, node: ast.ExceptHandler | ast.Call) -> Iterator[Finding]:
    """`except:`, `except Exception` in any spelling, and `suppress(Exception)`."""
    expected = "the exceptions by name; only processes/fork_server.py and child/server.py catches whatever comes"
    if isinstance(node, ast.ExceptHandler):
        caught = [] if node.type is None else node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        if node.type is None:
            yield source.finding(node.lineno, "broad except", "`except:`", expected)
    else:
        caught = node.args if ast.unparse(node.func).rpartition(".")[2] == "suppress" else []
    for kind in caught:
        if ast.unparse(kind).rpartition(".")[2] in _CATCH_ALL:
            yield source.finding(node.lineno, "broad except", f"`{ast.unparse(kind)}`", expected)


def main() -> int:
    """Print the findings of a tree, this one unless another is named; 1 if there are any."""
    parser = Arguments(description=__doc__)
    parser.add_argument("root", nargs="?", type=Path, default=PROJECT_ROOT, help="a git checkout")
    found = findings_in(parser.parse_args().root)
    for finding in found:
        print(finding)
    print(f"house rules: {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    exit_with(main)

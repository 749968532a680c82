"""A file of the tree as the house rules see it: its text, its code without comments, its syntax, and what kind of file it is."""

from __future__ import annotations

import ast
import io
import re
import subprocess
import tokenize
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

EXAMPLE_PREFIXES = ("workload_", "baseline_", "optimized_", "library_", "shared_")
CUDA_SUFFIXES = (".cu", ".cuh")

_CHAPTER = re.compile(r"ch(\d\d)")
_TENSOR_CORES = re.compile(r"\b(wgmma|warpgroup_mma|tcgen05|wmma|mma)(\b|_)")
_CUDA_TOKEN = re.compile(r'"(?:\\.|[^"\\\n])*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_STARTS_A_STATEMENT = {tokenize.ENCODING, tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT}


@dataclass(frozen=True)
class Finding:
    """One place that breaks one rule."""

    path: str
    line: int
    rule: str
    found: str
    expected: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}: found {self.found}; expected {self.expected}"


@dataclass(frozen=True)
class Source:
    """One file: its path from the root, with slashes, and its text."""

    path: str
    text: str

    def finding(self, line: int, rule: str, found: str, expected: str) -> Finding:
        """A finding in this file."""
        return Finding(self.path, line, rule, found, expected)

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The folders and the name."""
        return PurePosixPath(self.path).parts

    @property
    def name(self) -> str:
        """The file's name."""
        return self.parts[-1]

    @property
    def is_python(self) -> bool:
        """Whether it is Python."""
        return self.name.endswith(".py")

    @property
    def is_cuda(self) -> bool:
        """Whether it is CUDA C++."""
        return self.name.endswith(CUDA_SUFFIXES)

    @cached_property
    def chapter(self) -> int | None:
        """The number of the chapter that holds the file."""
        match = _CHAPTER.fullmatch(self.parts[0])
        return int(match[1]) if match and len(self.parts) > 1 else None

    @property
    def is_lab(self) -> bool:
        """Whether a lab holds the file."""
        return self.parts[0] == "labs"

    @property
    def is_template(self) -> bool:
        """Whether it is text that the tool writes elsewhere."""
        return "templates" in self.parts[:-1]

    @property
    def is_example(self) -> bool:
        """Whether it is a file of a pair, one that pairs share, or a template of one."""
        in_place = self.chapter is not None or self.is_lab or self.is_template
        return in_place and (self.is_python or self.is_cuda) and self.name.startswith(EXAMPLE_PREFIXES)

    @property
    def is_ours(self) -> bool:
        """Whether it is Python that an example imports or a person runs, not an example and not a test."""
        return self.is_python and self.parts[0] in ("common", "tools") and not self.is_template

    @cached_property
    def uses_tensor_cores(self) -> bool:
        """Whether the code issues tensor-core instructions itself."""
        return bool(_TENSOR_CORES.search(self.code))

    @cached_property
    def code(self) -> str:
        """The text with comments and docstrings blanked, its lines where they were."""
        if self.is_python:
            return _python_code(self.text)
        if self.is_cuda:
            return _CUDA_TOKEN.sub(lambda match: match[0] if match[0].startswith('"') else _blank(match[0]), self.text)
        return self.text

    @cached_property
    def syntax(self) -> ast.Module:
        """The syntax tree of a Python file. Raises SyntaxError."""
        return ast.parse(self.text, filename=self.path)


def sources_of(root: Path) -> list[Source]:
    """Every text file below `root` that git tracks or would add, sorted by path. Raises CalledProcessError outside a git repository."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root, check=True, capture_output=True, text=True
    )
    paths = sorted({path for path in listed.stdout.split("\0") if path and (root / path).is_file()})
    return [Source(path, text) for path in paths if (text := _text_of(root / path)) is not None]


def _text_of(path: Path) -> str | None:
    data = path.read_bytes()
    return None if b"\0" in data else data.decode("utf-8", errors="replace")


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _python_code(text: str) -> str:
    lines = text.splitlines(keepends=True)
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return text  # the syntax rule names it
    before = tokenize.ENCODING
    for token in tokens:
        is_docstring = token.type == tokenize.STRING and before in _STARTS_A_STATEMENT
        if token.type == tokenize.COMMENT or is_docstring:
            _blank_span(lines, token)
        if token.type != tokenize.COMMENT:
            before = token.type
    return "".join(lines)


def _blank_span(lines: list[str], token: tokenize.TokenInfo) -> None:
    (first, start), (last, end) = token.start, token.end
    for number in range(first, last + 1):
        line = lines[number - 1]
        left = start if number == first else 0
        right = end if number == last else len(line)
        lines[number - 1] = line[:left] + _blank(line[left:right]) + line[right:]

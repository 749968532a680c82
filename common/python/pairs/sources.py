"""What a file's text is: whether two sides are the same code, so that what is between them is noise, and whether one was edited."""

from __future__ import annotations

import ast
import hashlib
import re
from pathlib import Path

_CUDA_TOKEN = re.compile(r'(?P<kept>"(?:\\.|[^"\\\n])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)


def same_code(first: Path, second: Path) -> bool:
    """Whether two files differ in comments, docstrings and layout alone.

    What they share by import or include is taken to be the same, so files of different folders that share something are not.
    """
    shares = first.parent != second.parent and "shared_" in first.read_text(encoding="utf-8")
    return first.suffix == second.suffix and not shares and _essence(first) == _essence(second)


def digest_of(*paths: Path) -> str:
    """A fingerprint of the files' bytes, in order."""
    return hashlib.sha256(b"".join(hashlib.sha256(path.read_bytes()).digest() for path in paths)).hexdigest()


def _essence(path: Path) -> str:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        return ast.unparse(_without_docstrings(ast.parse(text)))
    return " ".join(_CUDA_TOKEN.sub(lambda match: match["kept"] or " ", text).split())


def _without_docstrings(tree: ast.Module) -> ast.Module:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return tree

"""The architecture page names files, functions and rooms that are there."""

import ast
import re

from common.python.project import PROJECT_ROOT

PAGE = (PROJECT_ROOT / "common" / "docs" / "architecture.md").read_text()
CODE = PROJECT_ROOT / "common" / "python"
PLACES = sorted(set(re.findall(r"`([\w/]+\.py):([\w.]+)`", PAGE)))


def names_in(path):
    """The functions, classes and methods of a file, with dots."""
    found = set()
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{each.name}" for each in node.body if isinstance(each, ast.FunctionDef)}
    return found


def test_every_function_and_class_that_the_page_names_is_there():
    assert len(PLACES) > 40
    missing = [f"{file}:{name}" for file, name in PLACES if not (CODE / file).is_file() or name not in names_in(CODE / file)]
    assert missing == []


def test_every_file_that_the_page_names_is_there():
    named = re.findall(r"`([\w/]+\.py)`", PAGE)
    assert [file for file in named if not (CODE / file).is_file() and not (PROJECT_ROOT / file).is_file()] == []


def test_the_page_has_every_room():
    rooms = {path.parent.name + "/" for path in CODE.glob("*/__init__.py")}
    modules = {path.name for path in CODE.glob("*.py")} - {"__init__.py"}
    assert set(re.findall(r"^\| `(\w+/)` \|", PAGE, re.MULTILINE)) == rooms
    assert modules <= set(re.findall(r"`(\w+\.py)`", PAGE))


def test_every_room_says_in_one_sentence_what_it_is_for():
    for package in sorted(CODE.rglob("__init__.py")):
        tree = ast.parse(package.read_text())
        docstring = ast.get_docstring(tree)
        assert docstring is not None, package
        assert docstring.endswith("."), package
        assert docstring.count(". ") == 0, package
        assert len(tree.body) == 1, package  # it exports nothing

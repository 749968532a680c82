"""A side imports from its own folder and from common. A shared file that is a copy of another folder's says so, and stays one."""

import re
from pathlib import Path

import pytest

from common.python.pairs.sources import same_code
from tests.support.commands import ROOT

COPY = re.compile(r"\bcopy of ((?:ch\d\d|labs/\w+)/shared_\w+\.(?:py|cuh?))")


def findings(root):
    files = sorted(
        path for folder in ("ch*", "labs/*") for path in root.glob(f"{folder}/shared_*") if path.suffix in (".py", ".cu", ".cuh")
    )
    told = {file: {root / name for name in COPY.findall(file.read_text())} for file in files}
    for file in files:
        for other in told[file]:
            if not (other.is_file() and same_code(other, file)):
                yield f"{file.relative_to(root)}: found other code than in {other.relative_to(root)}; expected a copy of it"
        for other in files[files.index(file) + 1 :]:
            if file.name == other.name and same_code(file, other) and other not in told[file] and file not in told[other]:
                yield f"{other.relative_to(root)}: found a copy of {file.relative_to(root)}; expected its docstring to say so"


def test_copies_are_told_and_stay_copies():
    assert list(findings(ROOT)) == []


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ('"""Adds one."""\n\nONE = 1\n', "expected its docstring to say so"),
        ('"""Adds one. A copy of ch01/shared_one.py."""\n\nONE = 2\n', "found other code than in ch01/shared_one.py"),
        ('"""Adds one. A copy of ch01/shared_two.py."""\n\nTWO = 2\n', "found other code than in ch01/shared_two.py"),
        ('"""Adds one. A copy of ch01/shared_one.py."""\n\nONE = 1\n', ""),
        ('"""Adds two."""\n\nONE = 2\n', ""),
    ],
)
def test_a_copy_that_is_not_told_or_no_copy_is_found(tmp_path, text, sentence):
    for path, source in (("ch01/shared_one.py", '"""Adds one."""\n\nONE = 1\n'), ("labs/sums/shared_one.py", text)):
        Path(tmp_path, path).parent.mkdir(parents=True)
        Path(tmp_path, path).write_text(source)
    found = list(findings(tmp_path))
    assert len(found) == bool(sentence)
    assert not found or sentence in found[0]

"""Writes common/docs/licences.md: under which licence each package is that pyproject.toml names, as the package's own metadata says.

python tools/checks/licences.py          writes the page
python tools/checks/licences.py --check  writes nothing; fails if the page differs

A package is read where it is installed in the version that constraints.txt pins; of any other the page keeps its row, so that a machine
with a torch of its own, or without the tools of development, finds the page as it is.
"""

from __future__ import annotations

import importlib.metadata
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from common.python.command import exit_with
from common.python.errors import BenchmarkError, ExitCode
from common.python.project import PROJECT_ROOT
from tools.checks.written_tables import row, rows, write_or_check

PAGE = Path("common/docs/licences.md")
_HEAD = ("package", "asked for by", "version", "licence")
_TEXT = """\
# Licences of what this project uses

This project is under [Apache-2.0](../../LICENSE). It ships none of the packages below; `pip` installs them.
The licence is what each package's metadata says, in the version that [constraints.txt](../../constraints.txt) pins.
Written by `tools/checks/licences.py`.

{table}
"""
_NAME = re.compile(r"[\w.-]+")
_LONGEST = 40
"""Characters of a `License` field that names one; a longer one is the licence's text."""


def asked_for(root: Path) -> Iterator[tuple[str, str]]:
    """Each package that is asked for directly, with who asks for it: every user, an extra, the build or setup.sh."""
    document = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    project = document["project"]
    extras = {f"extra `{name}`": each for name, each in project["optional-dependencies"].items()}
    for who, requirements in {"every user": project["dependencies"], **extras}.items():
        for requirement in requirements:
            if name := _NAME.match(requirement):
                yield name[0], who
    yield "nvidia-cutlass", "`setup.sh`, for its headers"


def licence_in(metadata: importlib.metadata.PackageMetadata) -> str:
    """The licence as a package states it: an SPDX expression, else the name in its `License` field, else its classifier; "" for none."""
    fields = metadata.json
    if expression := fields.get("license_expression"):
        return str(expression)
    named = str(fields.get("license", "")).strip()
    if named and "\n" not in named and len(named) <= _LONGEST:
        return named
    classifiers = fields.get("classifier", [])
    return next((each.rpartition(" :: ")[2] for each in classifiers if each.startswith("License :: OSI Approved ::")), "")


def _line(name: str, who: str, pin: str, page: str) -> str:
    """The row of a package. Raises BenchmarkError if it states no licence, and if neither it nor its row is to be found."""
    begin = row((name, who, pin or "not pinned")).removesuffix("|")
    try:
        found = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        found = None
    if found is None or (pin and found.version.partition("+")[0] != pin):
        kept = next((line for line in page.splitlines() if line.startswith(begin)), "")
        if not kept:
            there = f"version {found.version}" if found else "no such package"
            raise BenchmarkError(f"{name}: found {there} and no row of it in {PAGE}; expected {pin or 'any version'}, to read its licence")
        return kept
    licence = licence_in(found.metadata)
    if not licence:
        raise BenchmarkError(f"{name} {found.version}: found no licence in its metadata; expected one")
    return row((name, who, pin or "not pinned", licence))


def rewritten(root: Path) -> dict[Path, str]:
    """What the page below `root` should say, by its path. Raises BenchmarkError for a package whose licence cannot be told."""
    page = root / PAGE
    before = page.read_text(encoding="utf-8") if page.is_file() else ""
    pins = dict(line.split("==") for line in (root / "constraints.txt").read_text(encoding="utf-8").splitlines() if "==" in line)
    lines = [_line(name, who, pins.get(name, ""), before) for name, who in asked_for(root)]
    return {page: _TEXT.format(table="\n".join([rows(_HEAD, []), *lines]))}


def main(arguments: list[str] | None = None, root: Path = PROJECT_ROOT) -> ExitCode:
    """Write the page, or with `--check` say whether it differs; USAGE if it does, or if it cannot be written."""
    return write_or_check(rewritten, root, "tools/checks/licences.py", arguments)


if __name__ == "__main__":
    exit_with(main)

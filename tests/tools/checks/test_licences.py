"""The page of licences holds what the packages say of themselves, and every package that is asked for is on it."""

import importlib.metadata

import pytest

from tools.checks import licences
from tools.checks.licences import PAGE, asked_for, licence_in, main

PROJECT = """\
[project]
dependencies = ["one>=1", "two"]
[project.optional-dependencies]
extra = ["three; python_version > '3'"]
"""


class Package(importlib.metadata.Distribution):
    """An installed package whose METADATA has these fields."""

    def __init__(self, version, **fields):
        given = {"Metadata-Version": "2.4", "Version": version} | {name.replace("_", "-"): value for name, value in fields.items()}
        lines = [f"{name}: {each}" for name, value in given.items() for each in (value if isinstance(value, list) else [value])]
        self.text = "\n".join(lines) + "\n"

    def read_text(self, filename):
        return self.text if filename == "METADATA" else None

    def locate_file(self, path):
        raise NotImplementedError


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project that asks for four packages, and those that are installed, by name."""
    (tmp_path / "pyproject.toml").write_text(PROJECT)
    (tmp_path / "constraints.txt").write_text("# pins\none==1.0\nthree==3.0\n")
    (tmp_path / PAGE).parent.mkdir(parents=True)
    installed = {
        "one": Package("1.0+cpu", License_Expression="MIT"),
        "two": Package("9", License="BSD"),
        "three": Package("3.0", Classifier="License :: OSI Approved :: ISC License"),
        "nvidia-cutlass": Package("4", License="BSD-3-Clause"),
    }

    def distribution(name):
        if name not in installed:
            raise importlib.metadata.PackageNotFoundError(name)
        return installed[name]

    monkeypatch.setattr(licences.importlib.metadata, "distribution", distribution)
    return tmp_path, installed


def test_the_committed_page_is_up_to_date(capsys):
    assert main(["--check"]) == 0, capsys.readouterr().out


def test_the_page_names_every_package_with_who_asks_for_it(project):
    root, _ = project
    assert [name for name, _ in asked_for(root)] == ["one", "two", "three", "nvidia-cutlass"]
    assert main([], root) == 0
    page = (root / PAGE).read_text()
    assert "| one | every user | 1.0 | MIT |" in page
    assert "| two | every user | not pinned | BSD |" in page
    assert "| three | extra `extra` | 3.0 | ISC License |" in page
    assert main(["--check"], root) == 0


def test_another_licence_and_another_package_are_told(project, capsys):
    root, installed = project
    main([], root)
    installed["one"] = Package("1.0", License_Expression="GPL-3.0-only")
    assert main(["--check"], root) == 1
    assert f"{PAGE}: differs" in capsys.readouterr().out
    (root / "pyproject.toml").write_text(PROJECT.replace('"two"', '"four"'))
    assert main(["--check"], root) == 1
    assert f"four: found no such package and no row of it in {PAGE}" in capsys.readouterr().err


def test_what_is_not_there_or_of_another_version_keeps_its_row(project):
    root, installed = project
    main([], root)
    del installed["two"], installed["nvidia-cutlass"]
    installed["three"] = Package("2.9", License_Expression="GPL-3.0-only")
    assert main(["--check"], root) == 0


def test_a_package_without_a_licence_is_an_error(project, capsys):
    root, installed = project
    installed["two"] = Package("9")
    assert main([], root) == 1
    assert "two 9: found no licence in its metadata; expected one" in capsys.readouterr().err


def licence_of(**fields):
    return licence_in(Package("1", **fields).metadata)


def test_an_expression_comes_before_a_name_and_a_name_before_a_classifier():
    classifier = ["License :: DFSG approved", "License :: OSI Approved :: MIT License"]
    assert licence_of(License_Expression="MIT", License="B", Classifier=classifier) == "MIT"
    assert licence_of(License="Apache 2.0", Classifier=classifier) == "Apache 2.0"
    assert licence_of(License="Copyright (c)\n        All rights reserved", Classifier=classifier) == "MIT License"
    assert licence_of(License="x" * 41, Classifier=classifier) == "MIT License"
    assert licence_of(Classifier=["License :: DFSG approved"]) == ""

"""The wheel, built of the sdist, installed into an environment of its own and used from an empty folder, away from this checkout."""

import json
import os
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The folder with the wheel, which is made of the sdist, as a package index would have them."""
    hatchling = pytest.importorskip("hatchling", reason="no hatchling to build with")
    build = (sys.executable, "-m", "hatchling", "build", "-d")
    where = str(Path(hatchling.__file__).parents[1])
    folder = tmp_path_factory.mktemp("built")
    _run(*build, folder, "-t", "sdist", cwd=ROOT, PYTHONPATH=where)
    (sdist,) = folder.glob("*.tar.gz")
    subprocess.run(["tar", "-xzf", sdist, "-C", folder], check=True)
    _run(*build, folder, "-t", "wheel", cwd=folder / sdist.name.removesuffix(".tar.gz"), PYTHONPATH=where)
    return folder


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """What runs a command in an environment that has the wheel, and what it depends on from here, in a user's own empty checkout."""
    folder = tmp_path_factory.mktemp("user")
    home = folder / ".venv"
    venv.create(home, with_pip=False)
    (packages,) = home.glob("lib/python*/site-packages")
    here = [path for path in sys.path if Path(path).name in {"site-packages", "dist-packages"}]
    (packages / "dependencies.pth").write_text("".join(f"{path}\n" for path in here))
    (wheel,) = built.glob("*.whl")
    _run(sys.executable, "-m", "pip", "--python", home / "bin/python", "install", "--no-deps", "--no-index", wheel)
    _run("git", "init", "--quiet", folder)
    identity = ("-c", "user.name=u", "-c", "user.email=u@example.org")
    _run("git", *identity, "commit", "--quiet", "--allow-empty", "--message", "theirs", cwd=folder)
    return lambda *command: _run(home / "bin" / command[0], *command[1:], cwd=folder, XDG_CACHE_HOME=str(folder / "cache"))


def _run(*command, cwd=None, **variables):
    """The standard output of a command that does well, which sees nothing of this checkout."""
    environment = {name: value for name, value in os.environ.items() if name not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(list(map(str, command)), cwd=cwd, env=environment | variables, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.slow
def test_the_wheel_times_a_pair_of_ones_own_from_an_empty_folder(installed):
    assert "list-targets" in installed("benchmark_cli", "--help")
    paths = installed("benchmark_cli", "new", "mine:row_sum").split()
    folder = Path(paths[0]).parents[1]
    assert sorted(path.name for path in map(Path, paths)) == ["baseline_row_sum.py", "optimized_row_sum.py", "workload_row_sum.py"]
    assert "mine:row_sum" in installed("benchmark_cli", "list-targets")

    document = json.loads(installed("benchmark_cli", "run", "--device", "cpu", "--iterations", "2", "--json"))

    (row,) = document["rows"]
    assert (row["target"], row["status"]) == ("mine:row_sum", "PASSED")
    assert document["machine"]["project"] is None, "the user's commit is not this project's"
    assert document["machine"]["packages"][PROJECT["name"]] == PROJECT["version"]
    assert Path(document["artifacts"]).is_relative_to(folder / "artifacts")
    assert Path(document["artifacts"], "report.html").is_file()


@pytest.mark.slow
def test_the_wheel_has_every_file_of_its_packages(installed):
    told = installed("python", "-c", "import importlib.metadata as m; print(*m.files('performance-pairs'), sep='\\n')")
    tracked = _run("git", "ls-files", "common", "tools", cwd=ROOT)
    assert set(tracked.split()) <= set(told.split())


def test_the_citation_says_what_the_package_says():
    yaml = pytest.importorskip("yaml")
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert {"cff-version", "message", "title", "authors"} <= cited.keys()
    assert (cited["title"], cited["version"], cited["license"]) == (PROJECT["name"], PROJECT["version"], PROJECT["license"])
    assert cited["abstract"].rstrip(".") == PROJECT["description"]

"""--against: the old side runs with the project's modules of its own revision, what is said of the two follows what they imported."""

import shutil

import pytest

from common.python.errors import BenchmarkError, Status
from common.python.machine.description import child_environment
from common.python.processes.fork_server import ForkServer
from common.python.project import PROJECT_ROOT, import_folders
from tests.common.python.pairs.test_revisions import git
from tests.support.commands import Watcher, run_here, write_pair

ALIKE = "both sides are the same code: their difference is noise by construction"
SIDE = "import torch\n{early}\n\ndef prepare(x):\n    {late}y = torch.empty_like(x)\n    return lambda: twice(x, y)\n"
RIGHT = "import torch\n\n\ndef twice(x, y):\n    return torch.mul(x, 2, out=y)\n"
WRONG = RIGHT.replace("2", "3")
OTHERWISE = RIGHT.replace("torch.mul(x, 2, out=y)", "torch.add(x, x, out=y)")

PLACES = {
    "beside": ("mine/demo/fast.py", "from fast import twice"),
    "of the project": ("mine/fast.py", "from fast import twice"),
    "of a package": ("mine/src/sums/fast.py", "from sums.fast import twice"),
    "through another": ("mine/sums/fast.py", "from sums import twice"),
    "elsewhere": ("other/fast.py", "from fast import twice"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Where each test has its checkout, which one fork server knows."""
    return tmp_path_factory.mktemp("against") / "tree"


@pytest.fixture(scope="module")
def server(place):
    """One that finds the project, and a folder of the same checkout that is none of it."""
    (place / "mine/src").mkdir(parents=True)
    (place / "mine/pyproject.toml").touch()
    packages = (*import_folders(place / "mine"), place / "other")
    with ForkServer(child_environment(PROJECT_ROOT, "cpu", packages=packages)) as server:
        yield server


@pytest.fixture
def measured(place, server, tmp_path):
    """A function: the row of a pair whose side imports a helper, which is one text at HEAD and another now."""

    def run(where, then, now, *, late=False, workload_too=False, moved=""):
        helper, line = PLACES[where]
        results = tmp_path / f"run_{len(list(tmp_path.iterdir()))}"
        shutil.rmtree(place, ignore_errors=True)
        side = SIDE.format(early="" if late else line, late=f"{line}\n    " if late else "")
        write_pair(place / "mine", optimized=side, cpu_at='{"n": 64}')
        if workload_too:
            workload = place / "mine/demo/workload_double.py"
            workload.write_text(workload.read_text().replace("import torch\n", f"import torch\n{line}\n", 1))
        for folder in (place / "mine/src", place / "other", (place / helper).parent):  # where the server looked as it began
            folder.mkdir(parents=True, exist_ok=True)
        (place / "mine/pyproject.toml").touch()
        if where == "through another":
            (place / "mine/sums/__init__.py").write_text("from sums.fast import twice as twice\n")
        (place / helper).write_text(then)
        git(place.parent, "init", "-q", place.name)
        git(place, "add", ".")
        git(place, "commit", "-qm", "first")
        if moved:
            (place / helper).rename(place / moved)
        (place / (moved or helper)).write_text(now)
        outcome = run_here(place / "mine", results, server=server, command="verify", against="HEAD")
        (row,) = outcome.rows
        return row

    return run


OWN = ["beside", "of the project", "of a package", "through another"]


@pytest.mark.parametrize("where", OWN)
def test_the_old_side_runs_with_what_it_imported_then(measured, where):
    row = measured(where, WRONG, RIGHT)

    assert row.status is Status.WRONG_RESULT
    assert "optimized_double.py" in row.reason


@pytest.mark.parametrize("choices", [{"late": True}, {"workload_too": True}])
def test_so_it_does_where_it_imports_late_or_where_the_workload_imported_the_new_one(measured, choices):
    assert measured("of the project", WRONG, RIGHT, **choices).status is Status.WRONG_RESULT


@pytest.mark.parametrize("where", OWN)
def test_sides_that_import_other_code_are_not_called_the_same(measured, where):
    row = measured(where, OTHERWISE, RIGHT)

    name = PLACES[where][0].removeprefix("mine/")
    assert row.status is Status.PASSED, row.reason
    assert ALIKE not in row.notes
    assert [side.imports for side in row.sides.values()] == [(f"{name} at HEAD",), (name,)]


@pytest.mark.parametrize("where", OWN)
def test_sides_that_import_the_same_code_are(measured, where):
    row = measured(where, RIGHT, RIGHT.replace("import torch\n", '"""Words."""\n\nimport torch\n', 1))

    assert row.status is Status.PASSED, row.reason
    assert ALIKE in row.notes
    assert [side.imports for side in row.sides.values()] == [(), ()]


def test_a_module_that_moved_since_is_found_where_it_was(measured):
    row = measured("of the project", WRONG, RIGHT, moved="mine/demo/fast.py")
    assert row.status is Status.WRONG_RESULT

    row = measured("of the project", RIGHT, RIGHT, moved="mine/demo/fast.py")
    assert row.status is Status.PASSED, row.reason
    assert row.sides["baseline"].imports == ("fast.py at HEAD",)


def test_a_module_that_changed_and_is_not_of_the_project_is_refused_and_one_that_did_not_is_not(measured):
    row = measured("elsewhere", RIGHT, OTHERWISE)
    assert row.status is Status.UNPROVEN
    assert row.reason == (
        "optimized_double.py at HEAD: found that it imports other/fast.py, which is not what it was; expected modules beside it, or of "
        "the package or project that holds the root, which are taken from that revision"
    )

    assert ALIKE not in row.notes

    row = measured("elsewhere", RIGHT, RIGHT)
    assert row.status is Status.PASSED, row.reason
    assert ALIKE in row.notes


def test_a_run_is_not_resumed_against_another_commit(place, measured, server, tmp_path):
    measured("beside", RIGHT, RIGHT)
    settings = {"server": server, "command": "verify", "against": "base"}
    git(place, "tag", "base")
    run_here(place / "mine", tmp_path / "kept", **settings)
    watcher = Watcher()
    run_here(place / "mine", tmp_path / "kept", watcher, resume=True, **settings)
    assert "demo:double is done already" in watcher.notes

    git(place, "tag", "older", "HEAD")
    git(place, "commit", "-q", "--allow-empty", "-m", "second")
    git(place, "tag", "-f", "base")
    git(place, "checkout", "-q", "older")
    with pytest.raises(
        BenchmarkError, match=r"^--resume against commit [0-9a-f]{10}; expected [0-9a-f]{10}, which the rows of .* were against"
    ):
        run_here(place / "mine", tmp_path / "kept", resume=True, **settings)

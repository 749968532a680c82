"""Files become workloads and sides whatever else is on the path, and what is missing in one is said with its name."""

import importlib
import sys

import pytest

from common.python.child.sides.loader import PythonSide, import_file, imported, load_side, load_workload, look_back, look_here
from common.python.errors import BenchmarkError, SideFailure, Status
from common.python.pairs.revisions import Past
from common.python.project import PROJECT_ROOT
from tests.support.commands import write_pair


@pytest.fixture(autouse=True)
def imports(monkeypatch):
    """What a test imports is forgotten after it."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    known = set(sys.modules)
    yield
    for name in set(sys.modules) - known:
        del sys.modules[name]


def a_side(folder, source):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "baseline_double.py"
    path.write_text(source)
    return PythonSide(path, load_workload(write_pair(folder / "root") / "demo/workload_double.py"))


def test_a_workload_is_loaded_by_path(tmp_path):
    write_pair(tmp_path, time_at='{"n": 77}')
    assert load_workload(tmp_path / "demo/workload_double.py").timed_shapes == {"default": {"n": 77}}


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("workload = 3", "workload_x.py: found no WORKLOAD; expected WORKLOAD = Workload(...)"),
        ("WORKLOAD = {}", "workload_x.py: found WORKLOAD = dict; expected WORKLOAD = Workload(...)"),
    ],
)
def test_a_file_without_a_workload_is_refused(tmp_path, source, sentence):
    (tmp_path / "workload_x.py").write_text(source)
    with pytest.raises(BenchmarkError) as caught:
        load_workload(tmp_path / "workload_x.py")
    assert str(caught.value) == sentence


def test_folders_may_have_helpers_of_the_same_name(tmp_path):
    for folder in ("ch01", "ch02"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "shared_tile.py").write_text(f"PLACE = '{folder}'")
        (tmp_path / folder / "workload_x.py").write_text("from shared_tile import PLACE")
    files = [tmp_path / folder / "workload_x.py" for folder in ("ch01", "ch02", "ch01")]
    assert [import_file(file).PLACE for file in files] == ["ch01", "ch02", "ch01"]


def test_a_helper_is_imported_once_for_the_files_of_a_folder(tmp_path):
    (tmp_path / "shared_tile.py").write_text("STATE = []")
    for name in ("workload_x.py", "baseline_x.py"):
        (tmp_path / name).write_text("import shared_tile")
    first, second = (import_file(tmp_path / name) for name in ("workload_x.py", "baseline_x.py"))
    assert first.shared_tile is second.shared_tile


def test_a_file_beside_a_pair_does_not_take_the_place_of_a_library(tmp_path):
    import json

    (tmp_path / "json.py").write_text("")
    (tmp_path / "workload_x.py").write_text("import json")
    assert import_file(tmp_path / "workload_x.py").json is json


def test_a_side_gets_what_its_prepare_names(tmp_path):
    side = a_side(tmp_path, "def prepare(n, x):\n    return lambda: (n, x)\n")
    assert side.prepare({"x": "tensor", "unused": 1}, {"n": 3})() == (3, "tensor")


SIDES = {
    "step = 3": (SideFailure, "baseline_double.py: found no function `prepare`; expected prepare(...) that returns step"),
    "prepare = 3": (SideFailure, "baseline_double.py: found no function `prepare`"),
    "def prepare(x): return x": (SideFailure, "baseline_double.py: prepare returned str; expected a function, step"),
    "def prepare(x): pass": (SideFailure, "baseline_double.py: prepare returned NoneType; expected a function, step"),
    "def prepare(x): yield x": (SideFailure, "baseline_double.py: prepare returned str; expected a function, step"),
    "def prepare(weights): pass": (BenchmarkError, "baseline_double.py: prepare asks for 'weights'; expected a subset of ['n', 'x']"),
}


@pytest.mark.parametrize("source", SIDES)
def test_a_side_that_is_none_is_told_with_its_file(tmp_path, source):
    kind, sentence = SIDES[source]
    with pytest.raises(kind) as caught:
        a_side(tmp_path, source).prepare({"x": "tensor"}, {"n": 3})
    assert sentence in str(caught.value)
    assert kind is BenchmarkError or caught.value.status is Status.CRASHED


YIELDS = """
events = []

def prepare(n):
    events.append(f"open {n}")
    yield lambda: n
    events.append(f"close {n}")
"""


def test_what_a_side_yields_is_closed_once_before_the_next_preparation_and_in_the_end(tmp_path):
    side = a_side(tmp_path, YIELDS)
    events = sys.modules["baseline_double"].events
    assert side.prepare({}, {"n": 1})() == 1
    assert side.prepare({}, {"n": 2})() == 2
    side.close()
    side.close()
    assert events == ["open 1", "close 1", "open 2", "close 2"]


def test_a_python_side_is_loaded_where_no_library_was_built(tmp_path):
    write_pair(tmp_path)
    workload = load_workload(tmp_path / "demo/workload_double.py")
    side = load_side(tmp_path / "demo/optimized_double.py", workload, None)
    assert side.prepare({"x": 21}, {"n": 1})() == 42
    assert side.workspace() == []


def test_looking_back_and_here_again_changes_what_the_project_is_and_nothing_else(tmp_path, monkeypatch):
    """One process under a profiler runs both sides; what is imported of no project, or of no other revision, stays what it was."""
    now, then, installed = tmp_path / "now", tmp_path / "then", tmp_path / "now/.venv/lib/site-packages"
    for folder, text in ((now, "now"), (then, "then")):
        (folder / "src/sums/parts").mkdir(parents=True)
        (folder / "src/sums/__init__.py").write_text(f"WHEN = '{text}'\nfrom sums import more as more\n")
        (folder / "src/sums/more.py").write_text(f"WHEN = '{text}'\n")
        (folder / "bench").mkdir()
        (folder / "bench/workload_x.py").write_text("import sums, tool_x, untracked_x\n")
    installed.mkdir(parents=True)
    (installed / "tool_x.py").touch()
    (now / "src/untracked_x.py").touch()
    monkeypatch.setattr(sys, "path", [*sys.path, str(now / "src"), str(installed)])
    past = Past("0" * 40, then / "bench", then, now, (then, then / "src"))

    harness = set(sys.modules)
    first = import_file(now / "bench/workload_x.py")
    before = dict(sys.modules)
    look_back(past, harness)
    second = import_file(then / "bench/workload_x.py")
    seen = imported(past, before)
    look_here(past)
    third = import_file(now / "bench/workload_x.py")

    assert [(each.sums.WHEN, each.sums.more.WHEN) for each in (first, second, third)] == [("now", "now"), ("then", "then"), ("now", "now")]
    assert first.tool_x is second.tool_x is third.tool_x
    assert first.untracked_x is second.untracked_x
    assert seen == [str(then / name) for name in ("bench/workload_x.py", "src/sums/__init__.py", "src/sums/more.py")]


def test_of_this_project_what_sides_share_is_taken_from_the_revision_and_the_harness_is_not(tmp_path):
    tensor_files = importlib.import_module("common.tensor_files")  # which the harness reads inputs with
    for name in ("graph.py", "tensor_files.py", "python/errors.py"):
        (tmp_path / "common" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "common" / name).write_text("WHEN = 'then'\n")
    past = Past("0" * 40, tmp_path, tmp_path, PROJECT_ROOT, (tmp_path,))

    look_back(past, {*sys.modules} - {"common.graph"})
    graph, errors = importlib.import_module("common.graph"), importlib.import_module("common.python.errors")
    look_here(past)

    assert graph.WHEN == "then"
    assert errors.BenchmarkError is BenchmarkError
    assert importlib.import_module("common.tensor_files") is tensor_files
    assert importlib.import_module("common.graph").__file__ == str(PROJECT_ROOT / "common/graph.py")

"""The child that loads every workload first: it answers in numbers and names, and one workload is nothing to the next."""

import sys
import tempfile

import pytest
import torch

from common.python.child.describer import Describer, distinct, with_kwargs
from common.python.errors import BenchmarkError
from common.python.processes import messages
from tests.support.commands import write_pair


@pytest.fixture(autouse=True)
def imports(monkeypatch):
    """What a test imports is forgotten after it."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    known = set(sys.modules)
    yield
    for name in set(sys.modules) - known:
        del sys.modules[name]


def describe(root, target="demo:double", **kwargs):
    folder, name = target.split(":")
    sides = {role: str(root / folder / f"{role}_{name}.py") for role in ("baseline", "optimized")}
    request = messages.Describe(workload=str(root / folder / f"workload_{name}.py"), sides=sides, kwargs=kwargs)
    answer = Describer().answer(request)
    assert answer.nonce == request.nonce
    return answer


def test_a_workload_is_described_by_what_it_states(tmp_path):
    write_pair(tmp_path, goal='"accuracy"', clock='"launch"', cache='"hot"', place='"host"', check_at='({"n": 3}, {"n": 1})')
    described = describe(tmp_path)
    assert (described.goal, described.clock, described.cache, described.place) == ("accuracy", "launch", "hot", "host")
    assert (described.timed, described.cpu_at) == ({"default": {"n": 4096}}, {"n": 512})
    assert described.check_at == [{"n": 3}, {"n": 1}]
    assert described.mismatch == ""


REPORTS = 'lambda x: {"tokens": Metric(float(x.numel()), "1/s", "higher")}'


def test_a_goal_is_one_of_the_harness_or_a_figure_that_metrics_returns(tmp_path):
    write_pair(tmp_path, "demo:known", goal='"tokens"', metrics=REPORTS)
    assert describe(tmp_path, "demo:known").goal == "tokens"
    write_pair(tmp_path, "demo:misspelt", goal='"token"', metrics=REPORTS)
    with pytest.raises(BenchmarkError, match=r"workload_misspelt.py: goal='token' and metrics return tokens; expected the goal there"):
        describe(tmp_path, "demo:misspelt")
    write_pair(tmp_path, "demo:neutral", goal='"tokens"', metrics=REPORTS.replace("higher", "neither"))
    with pytest.raises(BenchmarkError, match=r"goal='tokens', of which neither way is better; expected a figure of which one is"):
        describe(tmp_path, "demo:neutral")
    write_pair(tmp_path, "demo:unknown", goal='"speed"')
    with pytest.raises(BenchmarkError, match=r"goal='speed'; expected time, memory, accuracy, energy, setup, or the name of a figure"):
        describe(tmp_path, "demo:unknown")
    write_pair(tmp_path, "demo:host", goal='"memory"', place='"host"')
    with pytest.raises(BenchmarkError, match=r"goal='memory' and place='host'; expected place='device'"):
        describe(tmp_path, "demo:host")


def test_no_shape_for_cpus_is_an_empty_one(tmp_path):
    assert describe(write_pair(tmp_path, cpu_at="None")).cpu_at == {}


def test_a_state_that_is_the_only_result_has_to_be_floating_point(tmp_path):
    stated = {"outputs": "lambda n: {}", "in_place": '("x",)', "state": '"evolves"', "steps": "2"}
    write_pair(tmp_path, "demo:whole", inputs='lambda rand, n: {"x": rand.integers(n, low=0, high=9)}', **stated)
    write_pair(tmp_path, "demo:half", inputs='lambda rand, n: {"x": rand.normal(n)}', **stated)
    with pytest.raises(BenchmarkError, match=r"workload_whole.py: outputs are empty and no state is floating-point; expected one that is"):
        describe(tmp_path, "demo:whole")
    assert describe(tmp_path, "demo:half").mismatch == ""


def test_inputs_and_outputs_say_where_they_lie(tmp_path):
    write_pair(
        tmp_path,
        inputs='lambda rand, n: {"x": rand.normal(n, where="pinned"), "w": rand.normal(n)}',
        outputs='lambda n: {"y": Spec((n,), torch.float32, where="pageable")}',
    )
    assert describe(tmp_path).places == {"x": "pinned", "y": "pageable"}


BAD_PLACES = {
    "where='pined'; expected device or pinned or pageable": {"inputs": 'lambda rand, n: {"x": rand.normal(n, where="pined")}'},
    "where='host'; expected device or pinned or pageable": {"outputs": 'lambda n: {"y": Spec((n,), torch.float32, where="host")}'},
    "workload_double.py: x has where='pinned' and place='host'; expected place='device', for a GPU that copies it": {
        "inputs": 'lambda rand, n: {"x": rand.normal(n, where="pinned")}',
        "place": '"host"',
    },
    "workload_double.py: output x has where='device', and the input of that name 'pinned'; expected the same": {
        "inputs": 'lambda rand, n: {"x": rand.normal(n, where="pinned")}',
        "outputs": 'lambda n: {"x": Spec((n,), torch.float32)}',
        "in_place": '("x",)',
    },
}


@pytest.mark.parametrize("sentence", BAD_PLACES)
def test_a_place_that_makes_no_sense_is_one_sentence(tmp_path, sentence):
    write_pair(tmp_path, **BAD_PLACES[sentence])
    with pytest.raises(BenchmarkError) as refused:
        describe(tmp_path)
    assert str(refused.value) == sentence


def test_ordinary_memory_of_the_host_is_no_contradiction(tmp_path):
    write_pair(tmp_path, inputs='lambda rand, n: {"x": rand.normal(n, where="pageable")}', place='"host"')
    assert describe(tmp_path).places == {"x": "pageable"}


def test_every_shape_is_tried(tmp_path):
    """A mistake that only the large shape shows is found before an hour of small ones."""
    write_pair(tmp_path, outputs='lambda n: {"y": Spec((4096 - n,), torch.float32)}')
    with pytest.raises(BenchmarkError, match=r"at \{'n': 4096\}"):
        describe(tmp_path)


def test_inputs_are_made_at_the_first_shape_to_check_only_and_their_files_are_gone(tmp_path, monkeypatch):
    write_pair(tmp_path, inputs='lambda rand, n: {"x": rand.normal(n if n < 512 else 1 << 60), "path": rand.file(n)}')
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    describe(tmp_path)
    assert list((tmp_path / "temporary").iterdir()) == []


def test_helpers_of_two_folders_do_not_mix(tmp_path):
    for folder, size in (("ch01", 11), ("ch02", 22)):
        write_pair(tmp_path, f"{folder}:double", cpu_at='{"n": __import__("shared_size").SIZE}')
        (tmp_path / folder / "shared_size.py").write_text(f"SIZE = {size}")
    assert [describe(tmp_path, f"{folder}:double").cpu_at for folder in ("ch01", "ch02")] == [{"n": 11}, {"n": 22}]


def test_torch_is_described_to_a_parent_that_must_not_import_it():
    answer = Describer().answer(messages.Probe())
    assert (answer.torch, answer.cuda) == (torch.__version__, torch.cuda.is_available())


def test_a_describer_runs_no_side():
    with pytest.raises(BenchmarkError, match="the describer was asked for check; expected describe or probe"):
        Describer().answer(messages.Check(seeds=[1], prefix="x"))


@pytest.mark.parametrize(
    ("old", "text", "value"),
    [(1, "-2", -2), (1.0, "3", 3.0), (1.0, "1e-5", 1e-5), (True, "0", False), (False, "TRUE", True), ("a", "7", "7")],
)
def test_a_value_takes_the_type_it_replaces(old, text, value):
    (found,) = with_kwargs({"key": old}, {"key": text}, "w.py").values()
    assert (type(found), found) == (type(value), value)


def test_entries_that_are_not_named_stay():
    assert with_kwargs({"n": 1, "m": 2}, {"m": "3"}, "w.py") == {"n": 1, "m": 3}


def test_inputs_are_not_tried_where_a_package_that_the_workload_needs_is_not_installed(tmp_path):
    write_pair(tmp_path, inputs="lambda rand, n: __import__('no_such_package')")
    with pytest.raises(Exception, match="no_such_package"):
        describe(tmp_path)
    workload = tmp_path / "demo" / "workload_double.py"
    workload.write_text("# needs: package no_such_package\n" + workload.read_text())
    described = describe(tmp_path)
    assert (list(described.timed), described.assets, described.mismatch, described.places) == (["default"], {}, "", {})


def test_shapes_that_kwargs_make_equal_are_timed_once_and_others_stay():
    shapes = {"large": {"m": 8, "n": 8}, "wide": {"m": 2, "n": 8}, "small": {"m": 2, "n": 4}}
    assert distinct(shapes) == shapes
    assert distinct({name: with_kwargs(shape, {"n": "4"}, "w.py") for name, shape in shapes.items()}) == {
        "large": {"m": 8, "n": 4},
        "wide": {"m": 2, "n": 4},
    }

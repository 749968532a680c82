"""A workload that cannot mean what its author meant is refused when it is stated, in one sentence."""

import copy
import inspect
import operator
import re

import pytest

from common import Precision, Spec, Workload
from common.python.errors import BenchmarkError
from common.python.pairs.workload import DEFAULT_SHAPE, call_by_name
from tests.support.commands import ROOT


def a_workload(**changes):
    fields = {
        "inputs": lambda rand, n: {"x": rand.normal(n)},
        "outputs": lambda n: {"y": Spec((n,), "float32")},
        "reference": lambda x: x,
        "time_at": {"n": 4096},
        "check_at": ({"n": 3}, {"n": 1}),
        "work": lambda n: {"dram_read": 4 * n},
        "rtol": 1e-6,
        "atol": 0.0,
    }
    return Workload(**fields | changes)


ROWS = operator.itemgetter
EVOLVING = {"state": "evolves", "steps": 3, "in_place": ("x",)}
REFUSED = {
    "check_at is empty; expected at least one": {"check_at": ()},
    "shape check_at[0] is 'n'; expected a dict of entries (a tuple of one needs its comma)": {"check_at": ({"n": 3})},
    "shape check_at[1] has keys ['m']; expected ['n'], those of time_at": {"check_at": ({"n": 3}, {"m": 3})},
    "shape cpu_at has keys ['m', 'n']; expected ['n']": {"cpu_at": {"n": 3, "m": 1}},
    "shape cpu_at has keys []": {"cpu_at": {}},
    "time_at is empty": {"time_at": {}},
    "shape default has n=[1]; expected an int, a float, a bool or a str": {"time_at": {"n": [1]}},
    "shape cpu_at has n='512', of type str; expected int, as in time_at": {"cpu_at": {"n": "512"}},
    "shape check_at[1] has n=1, of type int; expected str, as in time_at": {"time_at": {"n": "a"}, "check_at": ({"n": "b"}, {"n": 1})},
    "shape large has n='a', of type str; expected float, as in time_at": {"time_at": {"small": {"n": 0.5}, "large": {"n": "a"}}},
    "found rtl; expected a field of Workload, as rtol": {"rtl": 1e-4},
    "found zzz; expected a field of Workload, one of inputs, time_at, check_at, outputs, work, rtol, atol,": {"zzz": 1},
    "shape large has keys ['m']; expected ['n']": {"time_at": {"small": {"n": 1}, "large": {"m": 1}}},
    "rtol=-1e-06": {"rtol": -1e-6},
    "rtol=inf": {"rtol": float("inf")},
    "found no atol; expected a finite bound that is not negative": {"atol": float("nan")},
    "changes.rtol=-1; expected a finite bound that is not negative": {"changes": Precision(-1, 0)},
    "clock='gpu'; expected device or launch or host": {"clock": "gpu"},
    "cache='warm'; expected cold or hot": {"cache": "warm"},
    "place='cpu'; expected device or host": {"place": "cpu"},
    "reference_in='float16'; expected float64 or float32": {"reference_in": "float16"},
    "constants='x' is one string; expected a tuple of names": {"constants": "x"},
    "in_place='x' is one string": {"in_place": ("x")},
    "found no reference; expected one, or reference_rows": {"reference": None},
    "found no reference; expected one, or reference_rows where no state evolves": EVOLVING | {"reference": None, "reference_rows": ROWS},
    "found reference_rows and state='evolves'; expected reference alone": EVOLVING | {"reference_rows": ROWS},
    "state='grows'; expected refreshed or evolves": {"state": "grows"},
    "state='evolves' and in_place is empty; expected the names": EVOLVING | {"in_place": ()},
    "steps=1 and state='evolves'; expected at least 2 steps": EVOLVING | {"steps": 1},
    "steps=3 and state='refreshed'; expected state='evolves' where there are several": {"steps": 3},
}


@pytest.mark.parametrize("sentence", REFUSED)
def test_what_cannot_be_meant_is_refused(sentence):
    with pytest.raises(BenchmarkError, match=re.escape(sentence)):
        a_workload(**REFUSED[sentence])


@pytest.mark.parametrize("name", ["inputs", "time_at", "check_at", "outputs", "work", "rtol", "atol", "reference"])
def test_a_field_that_is_not_stated_is_named(name):
    with pytest.raises(BenchmarkError, match=f"^found no {name}; expected "):
        Workload(**{field: value for field, value in vars(a_workload()).items() if field != name})


def test_the_page_marks_the_fields_that_are_required():
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+)( \*)? \| ", _section("Fields of `Workload`"), re.MULTILINE)
    marked = {name for names, star in rows if star for name in re.findall(r"\w+", names)}
    assert marked == {"inputs", "time_at", "check_at", "outputs", "work", "rtol", "atol", "reference"}
    assert {name for names, _ in rows for name in re.findall(r"\w+", names)} == {*inspect.signature(Workload).parameters}


def _section(title):
    page = (ROOT / "common/docs/writing-a-pair.md").read_text(encoding="utf-8")
    return page.partition(f"## {title}\n")[2].partition("\n## ")[0].partition("\n### ")[0].partition("\nThe keys of")[0]


def test_text_and_numbers_of_several_kinds_may_be_in_shapes():
    shapes = {"time_at": {"n": 1, "codec": "lz4"}, "cpu_at": {"n": 0.5, "codec": "zstd"}, "check_at": ({"n": True, "codec": "1"},)}
    assert a_workload(**shapes).shape_keys == ("codec", "n")


def test_one_shape_is_called_default_and_several_keep_their_names():
    assert a_workload().timed_shapes == {DEFAULT_SHAPE: {"n": 4096}}
    assert a_workload(time_at={"small": {"n": 1}, "large": {"n": 2}}).timed_shapes == {"small": {"n": 1}, "large": {"n": 2}}


def test_a_lowered_precision_is_the_optimized_sides_alone():
    workload = a_workload(changes=Precision(0.1, 0.2))
    assert workload.tolerance("optimized") == Precision(0.1, 0.2)
    assert workload.tolerance("baseline") == workload.tolerance("library") == Precision(1e-6, 0.0)
    assert a_workload().tolerance("optimized") == Precision(1e-6, 0.0)


def test_a_tolerance_of_an_output_is_every_sides():
    workload, own = a_workload(changes=Precision(0.1, 0.2)), Precision(0.01, 0.0)
    for side in ("baseline", "optimized", "library"):
        assert workload.tolerance(side, Spec((3,), "float32", tolerance=own)) == own
        assert workload.tolerance(side, Spec((3,), "float32", changes=own)) == (own if side == "optimized" else workload.tolerance(side))
        assert workload.tolerance(side, Spec((3,), "float32")) == workload.tolerance(side)


@pytest.mark.parametrize(("bound", "named"), [(Precision(-1, 0), "tolerance.rtol=-1"), (Precision(0, float("nan")), "tolerance.atol=nan")])
def test_a_tolerance_of_an_output_is_a_bound(bound, named):
    with pytest.raises(BenchmarkError, match=f"{named}; expected a finite bound that is not negative"):
        Spec((3,), "float32", tolerance=bound)
    with pytest.raises(BenchmarkError, match=f"{named.replace('tolerance', 'changes')}; expected a finite bound that is not negative"):
        Spec((3,), "float32", changes=bound)
    with pytest.raises(BenchmarkError, match="found tolerance and changes in one Spec; expected one"):
        Spec((3,), "float32", tolerance=Precision(0.1, 0.0), changes=Precision(0.2, 0.0))


def test_an_output_counts_its_elements():
    assert [Spec(shape, None).elements for shape in ((3, 4), (), (5, 0))] == [12, 1, 0]


def test_a_function_gets_what_its_parameters_name():
    available = {"x": 1, "n": 2, "eps": 3}
    assert call_by_name(lambda n, x: (n, x), available, "here") == (2, 1)
    assert call_by_name(lambda n, other=7: (n, other), available, "here") == (2, 7)
    assert call_by_name(lambda **everything: everything, available, "here") == available
    assert call_by_name(lambda: "nothing", available, "here") == "nothing"


def test_a_parameter_that_nothing_can_fill_is_named():
    with pytest.raises(BenchmarkError, match=r"^a\.py: reference asks for 'weights'; expected a subset of \['n', 'x'\]$"):
        call_by_name(lambda x, weights: x, {"x": 1, "n": 2}, "a.py: reference")


def test_what_a_step_may_change_is_told_by_the_name_of_the_input_that_holds_it():
    workload = a_workload(in_place=("x",))
    assert [workload.may_change(name) for name in ("x", "x.layers.0", "xs", "y.x")] == [True, True, False, False]


def test_a_copy_states_nothing_and_is_the_same():
    workload = a_workload()
    assert copy.copy(workload) == workload

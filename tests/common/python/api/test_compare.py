"""Functions are timed from Python: in fresh processes by name, in one as they are, and a wrong one has no time."""

import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import torch

from common import Spec, Workload, compare, measure
from common.python.api import one_process
from common.python.api.compare import NotMeasured
from common.python.api.functions import label_of, name_of
from common.python.api.one_process import widened
from common.python.api.result import Speedup
from common.python.errors import BenchmarkError, Status
from common.python.machine.description import cpu_model
from common.python.measure import stopping
from common.python.results import Interval
from tests.common.python.run.test_interpreted_sides import KERNELS

ROOT = Path(__file__).parents[4]
LOOSE = {"rtol": 1e-4, "atol": 1e-4, "device": "cpu"}


@pytest.fixture(autouse=True)
def scratch(monkeypatch, tmp_path_factory):
    """Temporary files of its own, and so a machine's lock that no other test's run finds taken."""
    folder = tmp_path_factory.mktemp("scratch")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.fixture(autouse=True)
def few_units(monkeypatch):
    """As many as every interval has at least: none of these verdicts needs a narrow one."""
    monkeypatch.setattr(stopping, "BUDGET_S", 1.0)
    monkeypatch.setattr(one_process, "_BUDGET_NS", 1e9)


@pytest.fixture
def sums(tmp_path, monkeypatch):
    """A module of somebody else's, outside the tree."""
    yield from somebodys("sums", tmp_path, monkeypatch)


@pytest.fixture
def held(tmp_path, monkeypatch):
    """A module that holds compiled functions and the like."""
    yield from somebodys("held", tmp_path, monkeypatch)


def somebodys(name, folder, monkeypatch):
    (folder / f"somebodys_{name}.py").write_text(Path(__file__).with_name(f"{name}.py").read_text())
    monkeypatch.syspath_prepend(folder)
    yield importlib.import_module(f"somebodys_{name}")
    del sys.modules[f"somebodys_{name}"]


def test_functions_that_have_a_name_run_in_fresh_processes(sums):
    result = compare(sums.slow, sums.fast, inputs=sums.draw, work=sums.work, shape={"rows": 48}, **LOOSE)
    assert (result.how, result.device, result.verdict, result.names) == ("fresh processes", "cpu", "faster", ("slow", "fast"))
    assert 1.05 < result.speedup.low <= result.speedup.estimate <= result.speedup.high
    assert result.faster_than(1.05)
    assert not result.faster_than(1e6)
    assert repr(result).startswith("fast is ")
    assert " as fast as slow: faster; slow " in repr(result)
    assert "\n" not in repr(result)
    page = result._repr_html_()
    assert page.count("<circle") == 2 * len(result.units)
    assert "the reference is the first function, slow, in float64" in page
    assert next(iter(result.row.timings.values())).shape == {"rows": 48}
    assert (result.inputs, result.machine, result.clock) == ({"x": "float32 [48, 64]"}, cpu_model(), "host")


def test_lambdas_are_timed_in_this_process_which_the_result_says():
    result = compare(lambda x: x.sum(dim=1), lambda x: x.sum(dim=1), inputs=lambda rand: {"x": rand.normal(64, 64)}, **LOOSE)
    assert result.how == "one process"
    assert result.speedup.band_percent >= 3
    assert result.speedup.high / result.speedup.low > 1.05, "the interval is wider by what one process leaves unknown"
    assert "timed in one process" in result.notes[0]
    assert result.names == ("<lambda> (1)", "<lambda> (2)")
    assert result.verdict in ("same", "undecided", "slower", "faster")


def test_a_triton_function_is_checked_on_a_cpu_and_has_no_time_there(tmp_path, monkeypatch):
    (tmp_path / "somebodys_kernels.py").write_text(KERNELS)
    monkeypatch.syspath_prepend(tmp_path)
    kernels = importlib.import_module("somebodys_kernels")
    try:
        for functions in ((kernels.eager, kernels.tri), (kernels.tri, kernels.eager)):
            with pytest.raises(NotMeasured, match="ran in Triton's interpreter") as caught:
                compare(*functions, inputs={"x": torch.rand(300)}, **LOOSE)
            assert caught.value.status is Status.SKIPPED
        assert compare(kernels.eager, kernels.eager, inputs={"x": torch.rand(300)}, **LOOSE).how == "fresh processes"
    finally:
        del sys.modules["somebodys_kernels"]


def test_one_function_is_timed_alone(sums):
    result = measure(sums.fast, inputs={"x": torch.ones(32, 64)}, **LOOSE)
    assert (result.how, result.speedup, result.verdict) == ("fresh processes", None, "timed")
    assert result.times_ns["fast"].low > 0
    assert "inputs are the same in every call" in result.notes[0]
    with pytest.raises(ValueError, match=r"fast was timed alone; expected compare\(f, g\)"):
        result.faster_than(1)
    assert "<circle" in measure(lambda x: x + 1, inputs=torch.ones(64), device="cpu")._repr_html_()


@pytest.mark.parametrize("by_name", [True, False])
def test_a_wrong_function_has_no_time(sums, by_name):
    wrong = sums.wrong if by_name else lambda x: x.sum(dim=1) * 1.01
    with pytest.raises(NotMeasured) as told:
        compare(sums.slow, wrong, inputs=sums.draw, **LOOSE)
    assert told.value.status is Status.WRONG_RESULT
    where = r"wrong, input seed \d+" if by_name else "<lambda>"
    assert re.match(f"function {where}: output out: ", told.value.reason)
    assert " of 32 elements are outside rtol=0.0001, atol=0.0001" in told.value.reason
    assert "functions.py" not in told.value.reason


@pytest.mark.parametrize("by_name", [True, False])
def test_a_wrong_result_says_what_the_reference_is_where_none_was_given(sums, by_name):
    functions = [sums.wrong, sums.fast] if by_name else [lambda x: x.sum(dim=1) * 1.01, lambda x: x.sum(dim=1)]
    first, second = ("wrong", "fast") if by_name else ("<lambda> (1)", "<lambda> (2)")
    with pytest.raises(NotMeasured) as told:
        compare(*functions, inputs=sums.draw, **LOOSE)
    assert told.value.reason.startswith(f"function {second}")
    assert told.value.reason.endswith(f"; the reference is the first function, {first}, in float64, as none was given")
    with pytest.raises(NotMeasured) as told:
        compare(*functions, inputs=sums.draw, reference=sums.fast, **LOOSE)
    assert told.value.reason.startswith(f"function {first}")
    assert "the reference is" not in told.value.reason


def test_what_is_printed_says_what_checks_and_interval_do_not_cover(sums):
    drawn = compare(sums.slow, sums.fast, inputs=sums.draw, reference=sums.fast, **LOOSE)
    assert (str(drawn), drawn.caveats) == (repr(drawn), ()), "nothing is to be said"
    given = measure(lambda x: x + 1, inputs=torch.ones(64), device="cpu")
    first, *notes = str(given).splitlines()
    assert first == repr(given)
    assert [note.partition(",")[0].partition(":")[0] for note in notes] == ["  note"] * 3
    assert "timed in one process, as no other process can import <lambda>: " in notes[0]
    assert "inputs are the same in every call" in notes[1]
    assert "the reference is <lambda> in float64" in notes[2]
    assert max(map(len, notes)) < 140


def test_an_object_is_found_by_the_attribute_that_holds_it(held, monkeypatch):
    names = ("total", "compiled", "_twice", "at_once")
    assert [name_of(getattr(held, each)) for each in names] == [f"somebodys_held:{each}" for each in names]
    assert (name_of(held.layer), name_of(held.scaled)) == ("", ""), "their weights are others in each process"
    assert (label_of(held.layer), label_of(held.scaled)) == ("layer", "scaled")
    later = torch.compile(held.total, backend="eager")
    monkeypatch.setattr(held, "later", later, raising=False)
    assert name_of(later) == "", "the module's file does not have it"
    assert (label_of(3), label_of(torch.relu), name_of(torch.relu)) == ("int", "relu", "torch:relu")


@pytest.mark.slow
def test_a_compiled_function_of_a_module_has_its_own_name_and_fresh_processes(held):
    result = compare(held.total, held.compiled, inputs=held.draw, **LOOSE)
    assert (result.how, result.names) == ("fresh processes", ("total", "compiled"))
    with pytest.raises(NotMeasured, match=r"^WRONG_RESULT: function at_once"):
        compare(held.doubled, held.at_once, inputs=held.draw, **LOOSE)


def test_what_a_fresh_process_would_replace_is_timed_in_this_one(held, monkeypatch):
    monkeypatch.setattr(held, "doubled", torch.compile(held.total, backend="eager"))
    assert name_of(held.doubled) == "somebodys_held:doubled", "where another process finds the file's own"
    result = compare(held.total, held.doubled, inputs=held.draw, **LOOSE)
    assert result.how == "one process"
    assert "another process finds another object as somebodys_held:doubled" in result.caveats[0]


def test_names_are_those_of_the_result(sums):
    result = compare(lambda x: x.sum(dim=1), sums.fast, inputs=sums.draw, names=("before", "after"), **LOOSE)
    assert (result.names, set(result.times_ns)) == (("before", "after"), {"before", "after"})
    assert repr(result).startswith("after is ")
    assert "can import before: " in str(result)
    assert measure(sums.fast, inputs=sums.draw, names=["sum"], **LOOSE).names == ("sum",)


@pytest.mark.parametrize("names", [("one",), ("a", "b", "c"), ("same", "same"), "ab", ("a", ""), ("a", "two\nlines"), ("a", 3), None])
def test_names_are_one_text_for_each_function(names):
    with pytest.raises(BenchmarkError, match=r"^found names=.*; expected one text for each function, no two the same, as names="):
        compare(abs, abs, inputs=3, names=names)


def test_a_function_that_remembers_is_told_so():
    answers = {}

    def remembers(x):
        return answers.setdefault(x.shape, x.sum(dim=1)).clone()

    with pytest.raises(
        NotMeasured, match=r"this is the answer to the inputs of another call, of seed .*: step does not read its input x; "
    ):
        compare(lambda x: x.sum(dim=1), remembers, inputs=lambda rand: {"x": rand.normal(64, 64)}, **LOOSE)


def test_a_function_that_changes_its_input_has_no_time():
    with pytest.raises(NotMeasured, match="INPUT_MODIFIED: function <lambda>: changed input x0; expected it as it was, or in in_place"):
        measure(lambda x: x.add_(1).clone(), reference=lambda x: x + 1, inputs=torch.ones(8), device="cpu")


@pytest.mark.parametrize("by_name", [True, False])
def test_on_a_cpu_torch_has_one_thread_which_the_result_says(sums, by_name):
    counts = sums.threads if by_name else lambda x: 1 * sums.threads(x)
    result = measure(counts, inputs=sums.draw, reference=sums.one, device="cpu", names=("counts",))
    assert result.how == ("fresh processes" if by_name else "one process")
    assert repr(result).endswith(f"in {result.how} on one thread of the CPU)")


INTERPRETED = """
import torch, triton
import triton.language as tl

@triton.jit
def doubled(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + at, tl.load(x + at, mask=at < n) * FACTOR, mask=at < n)

def by_triton(x):
    y = torch.empty_like(x)
    doubled[(triton.cdiv(x.numel(), 256),)](x, y, x.numel(), BLOCK=256)
    return y

def by_torch(x):
    return 2 * x

def fails(x):
    raise ValueError("no such thing")

def draw(rand):
    return {"x": rand.normal(1024)}
"""
ASK = """
import kernels
from common import compare
from common.python.measure import stopping

stopping.BUDGET_S = 1.0
g, in_one = GIVEN
try:
    print(compare(kernels.by_torch, (lambda x: g(x)) if in_one else g, inputs=kernels.draw, device="cpu", names=("a", "b")).verdict)
except Exception as error:
    print(error)
"""


@pytest.mark.parametrize("in_one", [True, False])
@pytest.mark.parametrize(
    ("function", "factor", "told"),
    [
        ("by_triton", 2, r"SKIPPED: b ran in Triton's interpreter, which says nothing of speed: checked here, not timed; expected a GPU"),
        ("by_triton", 3, r"WRONG_RESULT: function b.*"),
        ("fails", 2, r"CRASHED: function b: .* ValueError: no such thing.*|no such thing"),
        ("by_torch", 2, r"same|undecided|faster|slower"),
    ],
)
def test_what_tritons_interpreter_runs_is_checked_and_not_timed(tmp_path, scratch, in_one, function, factor, told):
    pytest.importorskip("triton")
    (tmp_path / "kernels.py").write_text(INTERPRETED.replace("FACTOR", str(factor)))
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)]), "TMPDIR": str(scratch), "TRITON_INTERPRET": "1"}
    program = ASK.replace("GIVEN", f"kernels.{function}, {in_one}")
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200)
    assert re.fullmatch(told, done.stdout.strip()), done.stdout + done.stderr


def workload_of(n):
    return Workload(
        inputs=lambda rand, n: {"x": rand.normal(n)},
        outputs=lambda n: {"y": Spec((n,), torch.float32)},
        reference=lambda x: 2 * x,
        time_at={"n": 100},
        cpu_at={"n": n},
        check_at=({"n": 1},),
        work=lambda n: {},
        rtol=0.0,
        atol=0.0,
    )


def test_a_workload_says_all_of_it():
    assert compare(lambda x: x + x, lambda x, n: x[:n] * 2, inputs=workload_of(1000), device="cpu").how == "one process"


def test_a_target_is_timed_as_a_run_times_it():
    result = compare("ch01:basic_benchmark", device="cpu", gate=2.0)
    assert (result.how, result.device, result.names) == ("fresh processes", "cpu", ("baseline", "optimized"))
    assert result.speedup.low <= result.speedup.estimate <= result.speedup.high
    assert result.speedup.band_percent >= 2
    assert result.row.target == "ch01:basic_benchmark"


def test_one_side_of_a_target_is_timed_alone_in_a_root_of_ones_own(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    for file in (ROOT / "tests/outside").glob("*_top_k.py"):
        (folder / file.name).write_text(file.read_text())
    result = measure("mine:top_k_optimized", root=tmp_path, device="cpu")
    assert (result.names, result.speedup, result.row.target) == (("optimized",), None, "mine:optimized_top_k")
    assert [each.name for each in tmp_path.iterdir()] == ["mine"], "a result of Python leaves no folder"


@pytest.mark.parametrize(
    ("ask", "sentence"),
    [
        (lambda: compare("ch01"), r"^ch01: found \d pairs; expected one, as ch01:basic_benchmark$"),
        (lambda: compare("ch01:gemm_optimized"), r"found one side; expected both, as compare\('ch01:gemm'\), or measure\("),
        (lambda: compare("ch01:gem"), "target 'ch01:gem': found nothing of that name; expected one like ch01:gemm"),
        (lambda: compare("ch01:gemm", "ch01:performance"), "found a target and more; expected a target of two sides, alone"),
        (lambda: compare(abs, "ch01:gemm"), "found 'ch01:gemm' for a function; expected compare"),
        (lambda: measure("ch01:gemm", device="gpu"), "found device='gpu'; expected 'auto' or 'cuda' or 'cpu'"),
        (lambda: measure(abs, inputs=3, gate=-1), "found gate=-1; expected a change in percent, 0 or more, as gate=0.5"),
        (lambda: measure(abs, inputs=3, gate="1%"), "found gate='1%'; expected a change in percent, 0 or more"),
        (lambda: measure(abs, inputs=3, wait=float("nan")), "found wait=nan; expected seconds, 0 or more, as wait=600"),
        (lambda: compare(abs, max), r"compare\(abs, max\): found no inputs; expected compare\(f, g, inputs=...\)"),
        (lambda: measure(3), "measure: found int for a function; expected measure"),
        (lambda: measure("ch01:gemm", inputs=3), "ch01:gemm: found inputs=; expected it in the workload of the target"),
        (lambda: measure("ch01:gemm", devise="cpu"), "found devise=; expected device="),
        (lambda: compare("ch01:gemm", names=("a", "b")), "ch01:gemm: found names=; expected it with functions only"),
        (lambda: measure(abs, inputs=3, root="kernels"), "found root=; expected it with a target only"),
        (lambda: compare(workload_of(1)), r"found a Workload for a function; expected compare\(f, g, inputs=WORKLOAD\), or its target"),
    ],
)
def test_what_is_asked_of_a_target_is_refused_before_anything_runs(ask, sentence):
    with pytest.raises(BenchmarkError, match=sentence):
        ask()


def test_ctrl_c_in_a_run_reaches_who_asked(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("common.python.run.suite.run_pair", interrupted)
    with pytest.raises(KeyboardInterrupt):
        compare("ch01:basic_benchmark", device="cpu")


@pytest.mark.parametrize("asked", ["fails", "nothing", "text", "cuda", "misspelt", "none", "bare"])
def test_a_question_that_cannot_be_put_is_one_sentence(sums, asked):
    told = {
        "fails": ((sums.fails, sums.fast), {"inputs": sums.draw}, "somebodys_sums:fails: ValueError: no such thing"),
        "nothing": ((sums.slow, sums.fast), {}, r"compare\(slow, fast\): found no inputs; expected compare\(f, g, inputs=...\)"),
        "text": ((sums.slow, sums.fast), {"inputs": 3}, "inputs=int; expected a function of rand, "),
        "none": ((sums.nothing, sums.fast), {"inputs": sums.draw}, r"^nothing returned None; expected a tensor, or a tuple of tensors$"),
        "bare": (
            (sums.added, sums.fast),
            {"inputs": sums.bare},
            r"^added takes a and b: found 1 input, x0; expected inputs to be a dict, as \{'a': .*, 'b': .*\}, or a tuple in that order$",
        ),
        "misspelt": ((sums.slow, sums.fast), {"inputs": sums.draw, "referenec": sums.fast}, "found referenec=; expected reference="),
        "cuda": ((sums.slow, sums.fast), {"inputs": sums.draw, "device": "cuda"}, "device='cuda': found no GPU that torch can use"),
    }
    functions, choices, sentence = told[asked]
    if asked == "cuda" and torch.cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(BenchmarkError, match=sentence):
        compare(*functions, **{"device": "cpu", **choices})


@pytest.mark.parametrize(
    ("low", "high", "verdict"), [(1.02, 1.1, "faster"), (0.9, 0.95, "slower"), (0.999, 1.001, "same"), (0.99, 1.02, "undecided")]
)
def test_the_verdict_is_that_of_the_whole_interval(low, high, verdict):
    assert Speedup.of(Interval(estimate=(low * high) ** 0.5, low=low, high=high), 0.5).verdict == verdict


def test_an_interval_of_one_process_is_wider():
    wide = widened(Interval(estimate=2.0, low=2.0, high=2.0), 3)
    assert (wide.low, wide.high) == pytest.approx((2 / 1.03, 2 * 1.03))


PLUGIN = ["-p", "no:performance_pairs", "-p", "common.python.api.pytest_plugin", "-p", "no:xdist", "-p", "no:cacheprovider", "-q"]
TESTS = """
import somebodys_sums as sums

def test_fast(compare):
    assert compare(sums.slow, sums.fast, inputs=sums.draw, rtol=1e-4, atol=1e-4, device="cpu").faster_than(1.05)

def test_slow(compare):
    assert compare(sums.fast, sums.slow, inputs=sums.draw, rtol=1e-4, atol=1e-4, device="cpu").faster_than(1.05)
"""


def test_pytest_has_a_fixture_and_holds_what_was_stored(sums, tmp_path, scratch):
    (tmp_path / "test_mine.py").write_text(TESTS)
    few_units = "from common.python.measure import stopping\n\nstopping.BUDGET_S = 1.0\n"
    noisy_host = "from common.python.api import expected\n\nexpected.WIDEST_PERCENT = 1000.0\n"
    (tmp_path / "conftest.py").write_text(few_units + noisy_host)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)]), "PYTEST_ADDOPTS": "", "TMPDIR": str(scratch)}

    def pytest_here(*arguments):
        words = [sys.executable, "-m", "pytest", *PLUGIN, "--rootdir", tmp_path, "--gpu-expectations", "expected.json", *arguments]
        return subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=200)

    first = pytest_here("test_mine.py")
    assert "1 failed, 1 passed" in first.stdout, first.stdout + first.stderr
    assert "slow is 0." in first.stdout
    stored = (tmp_path / "expected.json").read_text()
    assert [*json.loads(stored)["comparisons"]] == ["test_mine.py::test_fast 1"], "of a test that failed nothing is stored"
    (tmp_path / "expected.json").write_text(re.sub(r'"(estimate|low|high)": ', r'"\1": 99', stored))
    second = pytest_here("test_mine.py::test_fast")
    assert "REGRESSED: fast is " in second.stdout, second.stdout
    assert "  note: the reference is the first function, slow, in float64" in second.stdout

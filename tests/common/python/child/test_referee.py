"""What the referee holds an answer against: everything, random rows, or several steps of a state; and what the command line makes of it."""

import builtins
import json

import pytest
import torch

from common.python.child import referee
from common.python.child.outputs import dump
from common.python.child.referee import Referee
from common.python.child.sides.compare import poison
from common.python.child.sides.inputs import Inputs
from common.python.child.sides.loader import load_workload
from common.python.errors import BenchmarkError, SideFailure
from common.python.processes import messages
from tests.support.commands import BASELINE, benchmark_here, write_pair

CPU = torch.device("cpu")
QUICK = ("--iterations", "2", "--warmup", "0")

ROWS = {
    "inputs": 'lambda rand, n: {"x": rand.normal(n, 2)}',
    "outputs": 'lambda n: {"y": Spec((n, 2), torch.float32), "s": Spec((n,), torch.float32)}',
    "reference": "None",
    "reference_rows": "lambda rows, x: (2 * x[rows], x[rows].sum(1))",
    "time_at": '{"n": 1 << 14}',
    "cpu_at": '{"n": 1 << 13}',
    "atol": "1e-6",
}
ROWS_SIDE = '"""A side."""\n\n\ndef prepare(x):\n    return lambda: (x * 2, x.sum(1))\n'

# An optimizer: a state of several tensors, one of them a counter, nested as a training loop has it.
STEP = """
def step(g, w, adam):
    adam["t"][0] += 1
    adam["m"].mul_(0.9).add_(g, alpha=0.1)
    adam["v"].mul_(0.99).add_(g * g, alpha=0.01)
    w.sub_(0.1 * adam["m"] / (1 - 0.9 ** adam["t"]) / (adam["v"].sqrt() + 0.1))
    return w * g
"""
STATE = '{"m": torch.zeros(n), "v": torch.zeros(n), "t": torch.zeros(1, dtype=torch.int64)}'
TRAINING = {
    "inputs": 'lambda rand, n: {"g": rand.normal(n), "w": rand.normal(n), "adam": ' + STATE + "}",
    "outputs": 'lambda n: {"y": Spec((n,), torch.float32)}',
    "reference": '__import__("shared_adam").step',
    "in_place": '("w", "adam")',
    "state": '"evolves"',
    "steps": "3",
    "atol": "1e-5",
}
TRAINS = '"""A side."""\n\nfrom shared_adam import step\n\n\ndef prepare(g, w, adam):\n    return lambda: step(g, w, adam)\n'
FORGETS = TRAINS.replace("step(g, w, adam)\n", '(adam["t"].zero_(), step(g, w, adam))[1]\n')
DESCENT = {
    "inputs": 'lambda rand, n: {"g": rand.normal(n), "w": rand.normal(n)}',
    "outputs": "lambda n: {}",
    "reference": "lambda g, w: (w.sub_(g, alpha=0.1), None)[1]",
    "in_place": '("w",)',
    "state": '"evolves"',
    "steps": "3",
    "atol": "1e-5",
}
DESCENDS = '"""A side."""\n\n\ndef prepare(g, w):\n    return lambda: (w.sub_(g, alpha=0.1), None)[1]\n'
STANDS = '"""A side."""\n\n\ndef prepare(g, w):\n    return lambda: None\n'


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("referee") / "root"
    write_pair(root, "demo:rows", baseline=ROWS_SIDE, optimized=ROWS_SIDE.replace("x * 2", "x + x"), **ROWS)
    write_pair(root, "demo:training", baseline=TRAINS, optimized=TRAINS.replace('"A side."', '"Another."'), **TRAINING)
    write_pair(
        root, "demo:descent", baseline=DESCENDS, optimized=DESCENDS.replace("w.sub_(g, alpha=0.1)", "w.add_(g, alpha=-0.1)"), **DESCENT
    )
    (root / "demo/shared_adam.py").write_text(f'"""A step of Adam."""\n{STEP}')
    return root


def rows_of(folder):
    return {row["target"]: row for row in json.loads((folder / "metrics.json").read_text())["rows"]}


def test_right_sides_are_verified_and_timed_under_both(root, tmp_path):
    finished = benchmark_here("run", "--root", root, "--device", "cpu", *QUICK, "--artifacts-dir", tmp_path / "run", scratch=tmp_path)
    assert finished.code == 0, finished
    rows = rows_of(tmp_path / "run")
    assert {target: row["status"] for target, row in rows.items()} == dict.fromkeys(
        ("demo:descent", "demo:rows", "demo:training"), "PASSED"
    )
    checks = {target: row["sides"]["optimized"]["checks"] for target, row in rows.items()}
    compared = {
        (check["shape"]["n"], name, output["rows_checked"]) for check in checks["demo:rows"] for name, output in check["outputs"].items()
    }
    assert compared == {(3, "y", None), (3, "s", None), (1 << 13, "y", 1026), (1 << 13, "s", 1026)}
    assert all(check["outputs"].keys() == {"y", "w", "adam.m", "adam.v", "adam.t"} for check in checks["demo:training"])
    assert all(check["outputs"].keys() == {"w"} for check in checks["demo:descent"])  # the state is all that a step answers
    assert all(any(check["timed_call"] for check in found) for found in checks.values())
    assert "of 1026 rows a call" in (tmp_path / "run/report.md").read_text()


def test_a_state_is_started_afresh_for_cold_samples(root, tmp_path):
    cold = ("--cold-start", "--iterations", "1", "--targets", "demo:training")
    finished = benchmark_here("run", "--root", root, "--device", "cpu", *cold, "--artifacts-dir", tmp_path / "run", scratch=tmp_path)
    assert finished.code == 0, finished
    assert rows_of(tmp_path / "run")["demo:training"]["status"] == "PASSED"


def test_wrong_sides_are_found_by_verify(tmp_path):
    root = write_pair(tmp_path / "root", "demo:training", baseline=TRAINS, optimized=FORGETS, **TRAINING)
    (root / "demo/shared_adam.py").write_text(f'"""A step of Adam."""\n{STEP}')
    wrong_at_large = ROWS_SIDE.replace("x * 2", "torch.cat([x * 2, x[:0]]) if len(x) < 64 else torch.where(ODD(x), x, x * 2)")
    odd = "import torch\n\n\ndef ODD(x):\n    return (torch.arange(len(x)) % 64 == 63)[:, None]\n\n\ndef prepare"
    write_pair(root, "demo:rows", baseline=ROWS_SIDE, optimized=wrong_at_large.replace("def prepare", odd), **ROWS)
    other_count = ROWS | {"reference_rows": "lambda rows, x: (2 * x[rows[1:]], x[rows].sum(1))"}
    write_pair(root, "demo:descent", baseline=DESCENDS, optimized=STANDS, **DESCENT)
    write_pair(root, "demo:short", baseline=ROWS_SIDE, optimized=ROWS_SIDE, **other_count)
    finished = benchmark_here("verify", "--root", root, "--device", "cpu", "--artifacts-dir", tmp_path / "run", scratch=tmp_path)
    assert finished.code == 4, finished
    rows = rows_of(tmp_path / "run")
    reasons = {target: row["reason"] for target, row in rows.items()}
    assert {target: row["status"] for target, row in rows.items()} == {
        "demo:descent": "WRONG_RESULT",
        "demo:rows": "WRONG_RESULT",
        "demo:short": "CRASHED",
        "demo:training": "WRONG_RESULT",
    }
    assert "elements in 1026 of 8192 rows are outside" in reasons["demo:rows"]
    assert reasons["demo:short"].startswith(
        "workload_short.py: reference_rows returned y of shape (2, 2); expected (3, 2), as outputs says; repeat: "
    )
    assert "output w: " in reasons["demo:descent"]
    assert "output adam.t: 1 of 1 elements are outside" in reasons["demo:training"]


def test_outputs_that_neither_the_reference_nor_a_side_has_are_the_workloads_mistake(tmp_path):
    root = tmp_path / "root"
    write_pair(root, "demo:workload", inputs='lambda rand, n: {"x": rand.normal(n, 2)}')
    write_pair(root, "demo:side", baseline=BASELINE.replace("x + x", "(x + x)[None]"))
    descent = DESCENT | {
        "outputs": 'lambda n: {"y": Spec((n, 2), torch.float32)}',
        "reference": "lambda g, w: w.sub_(g, alpha=0.1).clone()",
    }
    write_pair(root, "demo:state", baseline=DESCENDS, optimized=DESCENDS, **descent)
    finished = benchmark_here("verify", "--root", root, "--device", "cpu", "--artifacts-dir", tmp_path / "run", scratch=tmp_path)
    assert finished.code == 4, finished
    found = {target: (row["status"], row["reason"].partition("; repeat: ")[0]) for target, row in rows_of(tmp_path / "run").items()}
    assert found == {
        "demo:workload": ("CRASHED", "workload_workload.py: reference returned y of shape (3, 2); expected (3,), as outputs says"),
        "demo:side": (
            "WRONG_RESULT",
            "baseline_side.py: output y is torch.float32 of shape (1, 3); expected torch.float32 of shape (3,)",
        ),
        "demo:state": ("CRASHED", "workload_state.py: reference returned y of shape (3,); expected (3, 2), as outputs says"),
    }


# --- the referee by itself


@pytest.fixture
def judge(tmp_path):
    """What a referee says of the `answer` to a workload of some fields at n; `found` is the state that the call began with.

    The answer is made of the inputs' values at seed 2, or, `whole`, of the Inputs; the referee's own must be as they are left.
    """

    def judged(answer, n, referee=None, found=None, whole=False, earlier=(), **fields):
        path = write_pair(tmp_path, **fields) / "demo/workload_double.py"
        inputs = Inputs(load_workload(path), {"n": n}, 1, CPU, tmp_path)
        inputs.rewrite(2)
        outputs = answer(inputs) if whole else answer(**inputs.values)
        request = messages.Judge(
            workload=str(path),
            device="cpu",
            folder=str(tmp_path),
            side="baseline",
            shape={"n": n},
            prepare_seed=1,
            seed=2,
            outputs=dump(outputs, str(tmp_path / "answer")),
            found=dump(found or {}, str(tmp_path / "found")),
            earlier=list(earlier),
        )
        judged = (referee or Referee()).answer(request)
        assert judged.digest == inputs.digest()
        return judged

    return judged


BOTH = {"reference": "lambda x: 2 * x", "reference_rows": "lambda rows, x: -x[rows]", "check_at": '({"n": 3}, {"n": 4096})'}


SCALED = {
    "reference": "lambda x: (x, x.abs().amax(0, keepdim=True))",
    "rtol": "0.1",
}


@pytest.mark.parametrize(("factors", "told"), [((1.09, 1.001), ""), ((1.0, 1.02), "scale"), ((1.2, 1.0), "y")])
def test_an_output_is_held_to_the_tolerance_of_its_spec(judge, factors, told):
    """A scale that is off by 2 % would pass at the tolerance of the values."""

    def answer(x):
        return {"y": factors[0] * x, "scale": factors[1] * x.abs().amax(0, keepdim=True)}

    def mismatch(tolerance):
        scale = f"Spec((1,), torch.float32, tolerance={tolerance})"
        return judge(answer, 5, **SCALED, outputs=f'lambda n: {{"y": Spec((n,), torch.float32), "scale": {scale}}}').mismatch

    found = mismatch("__import__('common').Precision(0.01, 0.0)")
    assert found.startswith(f"output {told}: ") if told else not found
    assert mismatch("None") == ("" if told != "y" else found)


@pytest.mark.parametrize(("n", "factor"), [(3, 2), (4096, 2), (512, -1), (1026, -1), (1027, -1), (9999, -1)])
def test_where_a_workload_has_both_the_rows_are_for_shapes_that_are_timed(judge, n, factor):
    judged = judge(lambda x: {"y": factor * x}, n, **BOTH)
    assert judged.mismatch == ""
    assert judged.outputs["y"].rows_checked == (1026 if n in (1027, 9999) else None)


def test_rows_are_picked_by_chance_and_have_the_first_and_the_last(judge):
    kept = "lambda rows, x: __import__('builtins').__dict__.setdefault('asked', []).append(rows) or x[rows]"
    for _ in range(2):
        judge(lambda x: {"y": x}, 1 << 16, reference="None", reference_rows=kept)
    first, second = vars(builtins).pop("asked")
    assert first.tolist() != second.tolist()
    for rows in (first, second):
        assert rows.dtype == torch.int64
        assert rows.unique().tolist() == rows.tolist()
        assert (len(rows), int(rows[0]), int(rows[-1])) == (1026, 0, (1 << 16) - 1)


def test_a_slow_reference_of_a_shape_that_is_timed_is_told(judge, monkeypatch):
    def right(x):
        return {"y": 2 * x}

    assert judge(right, 512).notes == []
    monkeypatch.setattr(referee, "_SLOW_S", 0.0)
    assert judge(right, 3).notes == []
    assert judge(right, 512).notes == [
        "workload_double.py: reference took more than 0 s at n=512; expected reference_rows, which is asked for random rows"
    ]


GROWING = {
    "inputs": 'lambda rand, n: {"x": rand.uniform(n), "s": {"sum": rand.uniform(n), "t": torch.zeros(1, dtype=torch.int32)}}',
    "reference": 'lambda x, s: (s["t"].add_(1), s["sum"].add_(x), s["sum"] * 2)[2]',
    "in_place": '("s",)',
    "state": '"evolves"',
    "steps": "3",
    "atol": "1e-6",
}


def grown(inputs, sums, steps):
    """The answer of a side whose last step found `sums` in its state, and is its `steps`-th."""
    state = {"s.sum": sums + inputs["x"], "s.t": torch.tensor([steps], dtype=torch.int32)}
    return {"y": 2 * state["s.sum"], **state}


def test_steps_from_a_fresh_prepare_are_on_inputs_of_successive_seeds(judge):
    def three(inputs):
        sums = inputs.values["s"]["sum"].clone()
        for seed in (2, 3):
            inputs.rewrite(seed)
            sums += inputs.values["x"]
        inputs.rewrite(4)
        return grown(inputs.values, sums, 3)

    shared = Referee()
    for _ in range(2):  # the second time as well: its own state must not have moved
        shared._references.clear()
        judged = judge(three, 5, shared, whole=True, **GROWING)
        assert judged.mismatch == ""
        assert judged.outputs.keys() == {"y", "s.sum", "s.t"}


def test_a_timed_step_is_judged_from_the_state_that_it_found(judge):
    found = {"s.sum": torch.full((5,), 7.0), "s.t": torch.tensor([40], dtype=torch.int32)}
    shared = Referee()
    assert judge(lambda **inputs: grown(inputs, found["s.sum"], 41), 5, shared, found, **GROWING).mismatch == ""
    wrong = judge(lambda **inputs: grown(inputs, found["s.sum"], 40), 5, shared, found, **GROWING).mismatch
    assert wrong.startswith("output s.t: 1 of 1 elements are outside")
    found["s.sum"][1] = torch.nan
    unfit = judge(lambda **inputs: grown(inputs, found["s.sum"], 41), 5, shared, found, **GROWING).mismatch
    assert unfit == "state s.sum held NaN before the call; expected numbers, however often the step was called"


def test_all_of_a_state_has_to_be_there(judge):
    with pytest.raises(SideFailure, match=r"found outputs \['s.sum', 'y'\]; expected \['s.sum', 's.t', 'y'\]"):
        judge(lambda x, s: {"y": x, "s.sum": x}, 5, **GROWING)


def test_a_reference_that_returns_its_state_is_told(judge):
    returns = GROWING | {"reference": 'lambda x, s: (x, s["sum"])'}
    with pytest.raises(BenchmarkError, match=r"workload_double\.py: reference returned 2 values; expected 1: y"):
        judge(lambda **inputs: grown(inputs, inputs["s"]["sum"], 1), 5, **returns)


# --- why an answer is wrong: step did not read its input

ADDS = {"inputs": 'lambda rand, n: {"x": rand.normal(n), "w": rand.normal(n)}', "reference": "lambda x, w: x + 2 * w", "atol": "1e-6"}


def values(inputs, seed, *names):
    """What inputs of those names are with `seed`; the Inputs are left at seed 2, where the request has them."""
    inputs.rewrite(seed)
    found = [inputs.values[name].clone() for name in names]
    inputs.rewrite(2)
    return found


def of(seed):
    def answer(inputs):
        x, w = values(inputs, seed, "x", "w")
        return {"y": x + 2 * w}

    return answer


def of_stale_w(inputs):
    (w,) = values(inputs, 7, "w")
    return {"y": inputs.values["x"] + 2 * w}


def of_half(inputs):
    x, w = values(inputs, 7, "x", "w")
    answer = inputs.values["x"] + 2 * inputs.values["w"]
    answer[: len(x) // 2] = (x + 2 * w)[: len(x) // 2]
    return {"y": answer}


def poisoned(inputs):
    answer = {"y": torch.empty_like(inputs.values["x"])}
    poison(answer["y"])
    return answer


@pytest.mark.parametrize(
    ("answer", "earlier", "why"),
    [
        (of(7), (1, 7), "this is the answer to the inputs of another call, of seed 7: step does not read its inputs x and w"),
        (of(1), (1, 7), "this is the answer to what prepare was given: step does not read its inputs x and w"),
        (of_stale_w, (1, 7), "this is the answer to the inputs of another call, of seed 7: step does not read its input w"),
        (poisoned, (1,), "step left y unwritten"),
        (
            poisoned,
            (1, 7),
            "step left y unwritten; it may have returned an earlier answer",
        ),
        (of(7), (1,), ""),
        (of_half, (1, 7), ""),
        (lambda inputs: {"y": torch.zeros_like(inputs.values["x"])}, (1, 7), ""),
        (lambda inputs: {"y": inputs.values["x"]}, (1, 7), ""),
    ],
)
def test_an_answer_that_is_wrong_for_want_of_reading_is_told_so(judge, answer, earlier, why):
    mismatch = judge(answer, 5, whole=True, earlier=earlier, **ADDS).mismatch
    assert mismatch.startswith("output y: 5 of 5 elements are outside" if answer is not of_half else "output y: 2 of 5")
    assert mismatch.partition("tolerance; " if "times the tolerance" in mismatch else "expected ")[2].partition("; ")[2] == why or (
        mismatch.endswith(f"times the tolerance; {why}" if why else "times the tolerance")
    )


def test_a_right_answer_costs_no_other_reference(judge, monkeypatch):
    monkeypatch.setattr(referee, "why_wrong", lambda *_: pytest.fail("there is nothing to explain"))
    assert judge(of(2), 5, whole=True, earlier=(1, 7), **ADDS).mismatch == ""


def test_few_numbers_that_agree_with_those_of_another_call_tell_nothing(judge):
    """One of two values is another call's by chance every second time; 40 of them are not."""
    coins = {
        "inputs": 'lambda rand, n: {"x": rand.integers(n, low=0, high=2, dtype=torch.int32)}',
        "outputs": 'lambda n: {"y": Spec((n,), torch.int32)}',
        "reference": "lambda x: x",
    }

    def another(inputs):
        (x,) = values(inputs, 7, "x")
        return {"y": x}

    assert "another call" in judge(another, 40, whole=True, earlier=(1, 7), **coins).mismatch
    few = judge(another, 5, whole=True, earlier=(1, 7), **coins).mismatch
    assert few.startswith("output y: ")
    assert "another call" not in few


def test_a_reference_that_returns_its_input_is_kept_as_it_was(judge):
    """The second side's answer is held against what was kept of the first's, though inputs had other values in between."""
    draws = {"inputs": 'lambda rand, n: {"x": rand.integers(n, low=0, high=99)}', "outputs": 'lambda n: {"y": Spec((n,), torch.int64)}'}
    shared = Referee()

    def right(x):
        return {"y": x}

    assert judge(right, 40, shared, reference="lambda x: x", **draws).mismatch == ""
    shared._inputs.popitem()[1].rewrite(3)
    assert judge(right, 40, shared, reference="lambda x: x", **draws).mismatch == ""


def test_rows_that_are_of_another_call_are_told_too(judge):
    rows = {"reference": "None", "reference_rows": "lambda rows, x: 2 * x[rows]"}

    def another(inputs):
        (x,) = values(inputs, 7, "x")
        return {"y": 2 * x}

    assert "of seed 7: step does not read its input x" in judge(another, 9999, whole=True, earlier=(1, 7), **rows).mismatch


def test_a_timed_step_from_its_state_on_another_calls_input_is_told(judge):
    found = {"s.sum": torch.arange(5.0), "s.t": torch.tensor([40], dtype=torch.int32)}

    def another(inputs):
        (x,) = values(inputs, 7, "x")
        return grown({"x": x}, found["s.sum"], 41)

    assert judge(another, 5, None, found, whole=True, earlier=(1, 7), **GROWING).mismatch.endswith(
        "this is the answer to the inputs of another call, of seed 7: step does not read its input x"
    )

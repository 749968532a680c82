"""A prediction is an equation: read as text, refused where its arithmetic is wrong, and never dropped in silence where it is misspelt."""

import json

import pytest

from common.python.errors import BenchmarkError
from common.python.pairs import predictions
from common.python.pairs.directives import read_directives
from common.python.pairs.predictions import (
    Card,
    Constant,
    Guess,
    amount_text,
    calculate,
    card_for,
    card_of,
    is_model,
    lookalike,
    predictions_in,
    predictions_of,
    read_card,
    require_predictions,
    timed_shapes,
)
from tests.support.teeth import ROOT

CARD = Card("h200", "NVIDIA H200", "1", "2026-01-02", {"dram_copy": Constant(4e12, "bytes/s", "measured", "a copy")})
SHAPE = {"rows": 1000, "cols": 1000}


@pytest.fixture(autouse=True)
def _one_card(monkeypatch):
    """The H200 has a card in round numbers, and no other model has one."""
    monkeypatch.setattr(predictions, "card_of", lambda model: CARD if model == "h200" else None)


def read(line):
    """The one prediction of a line behind `predicts`."""
    ((found,), _) = predictions_in("optimized_x.cu", f"// Idea.\n// predicts{line}\n")
    return found


def test_a_time_with_its_equation_and_note():
    found = read(": optimized 1.09 ms = 412e9 / 400e12 + 0.06e-3    (TF32 tensor cores; half of (a + b))")
    assert (found.where, found.side, found.figure, found.unit) == ("optimized_x.cu:2", "optimized", "time", "s")
    assert found.value == pytest.approx(1.09e-3)
    assert (found.expression, found.note) == ("412e9 / 400e12 + 0.06e-3", "TF32 tensor cores; half of (a + b)")
    found.require_arithmetic({})


@pytest.mark.parametrize(
    ("line", "side", "figure", "value", "unit"),
    [
        (": baseline 8 us = 8e-6", "baseline", "time", 8e-6, "s"),
        (": baseline 8 µs = 8e-6", "baseline", "time", 8e-6, "s"),
        (": library .5 s = 0.5", "library", "time", 0.5, "s"),
        (": walk 3 ns = 3e-9", "walk", "time", 3e-9, "s"),
        (": optimized ttft_ms.p95 12 = 12", "optimized", "ttft_ms.p95", 12, ""),
        (": optimized ttft_ms.p95 12 ms = 12e-3", "optimized", "ttft_ms.p95", 12e-3, "s"),
        (": optimized peak_bytes 3.2e9 = 3.2e9", "optimized", "peak_bytes", 3.2e9, "bytes"),
        (": optimized peak_bytes 2 MiB = 2 * 1024 ** 2", "optimized", "peak_bytes", 2 << 20, "bytes"),
        (": counter dram__bytes.sum 8 MB = 8 * rows * cols", "optimized", "dram__bytes.sum", 8e6, "bytes"),
        (": counter dram__bytes.sum baseline 8e6 = 8 * rows * cols", "baseline", "dram__bytes.sum", 8e6, ""),
    ],
)
def test_a_side_a_figure_a_value_and_a_unit(line, side, figure, value, unit):
    found = read(line)
    assert (found.side, found.figure, found.unit) == (side, figure, unit)
    assert found.value == pytest.approx(value)
    assert found.is_counter == ("counter" in line)
    found.require_arithmetic(SHAPE)


def test_a_counter_is_a_multiple_of_what_another_side_has():
    found = read(": counter sectors.sum = 0.125 x baseline  (a sector a float)")
    assert (found.side, found.over, found.factor, found.value, found.note) == ("optimized", "baseline", 0.125, None, "a sector a float")


def test_a_shape_is_named_behind_the_at():
    assert read("@width 384: baseline 8 us = 8e-6").shape == "width 384"
    assert read(": baseline 8 us = 8e-6").shape == ""


@pytest.mark.parametrize("end", ["= 317e-6 on h200", "on H200", "on h200 (a tuning run)", "(a tuning run) on h200"])
def test_a_line_names_the_model_that_it_is_of(end):
    found = read(f": optimized 317 us {end}")
    assert (found.model, found.model_for({})) == ("h200", "h200")


def test_an_equation_is_of_any_model_where_it_names_a_constant_and_a_literal_time_of_one():
    assert read(": baseline 2 us = 8 * rows * cols / dram_copy").model_for(SHAPE) == ""
    assert read(": baseline 2 us = 8 * rows * cols / dram_copy on h100").model_for(SHAPE) == ""  # each model has its own dram_copy
    assert read(": baseline 2 us = 8 * rows * cols / 4e12 on h100").model_for(SHAPE) == "h100"
    assert read(": baseline 2 us = 8 * rows * cols / 4e12").model_for(SHAPE) == "h200"
    assert read(": baseline peak_bytes 8e6 = 8 * rows * cols").model_for(SHAPE) == ""
    assert read(": baseline peak_bytes 8e6 = 8 * rows * cols on h100").model_for(SHAPE) == ""  # bytes are the same on any
    assert read(": baseline peak_bytes 8e6 on h100").model_for(SHAPE) == "h100"
    assert read(": counter a = 0.5 x baseline").model_for(SHAPE) == ""


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("8 * rows * cols / dram_copy + 1e-6", 3e-6),
        ("max(rows, 3) - min(1, 2)", 999),
        ("2 ** 3 * (1 + 1)", 16),
        ("-1 + 2", 1),
        ("max (1, 2, 3)", 3),
    ],
)
def test_the_right_side_is_arithmetic(expression, value):
    assert calculate(expression, SHAPE, CARD) == pytest.approx(value)


@pytest.mark.parametrize(
    ("line", "found", "expected"),
    [
        (": baseline 8 ms", "no equation", "one, as in `predicts: optimized"),
        (": baseline 8 ms =", "no equation", "or the model, as in `on h200`"),
        (": baseline = 3e-6", "`baseline` without a value", "before the equation"),
        (": 8 ms = 3e-6", "`8 ms`", "a side and perhaps a figure"),
        (": the baseline takes 8 ms = 3e-6", "`the baseline takes 8 ms`", "a side and perhaps a figure"),
        (": counter 8 = 3", "`counter 8`", "a counter and perhaps a side"),
        (": baseline 8 = 8", "a time in no unit", "in ns, us, ms or s"),
        (": baseline 8 hours = 8", "`8 hours`", "one unit of ns"),
        (": baseline 8 ms or so = 8", "`8 ms or so`", "one unit of ns"),
        (": baseline 8 ms = rows rows", "`rows rows`, which is no arithmetic", "min"),
        (": baseline 8 ms = log(rows)", r"`log\(rows\)`", "min"),
        (": baseline 8 ms = rows.real", "`rows.real`", "min"),
        (": baseline 8 ms = 1 if rows else 2", "`1 if rows else 2`", "min"),
        (": baseline 8 ms = 'rows'", "`'rows'`", "min"),
        (": baseline 8 ms = 8e-3 on h20", "`on h20`", "one of a100"),
        (": baseline 8 ms = 8e-3 (a) and more", "`and more` behind the note", "a model, as in `on h200`"),
        (": counter a 3 = 0.5 x baseline", "a value before", "none"),
        ("@: baseline 8 ms = 8e-3", "`predicts@:`", "name of a timed shape"),
        (":", "`predicts:` without a value", "`predicts: optimized"),
    ],
)
def test_what_is_not_understood_is_one_sentence_with_file_and_line(line, found, expected):
    with pytest.raises(BenchmarkError, match=rf"optimized_x.cu:2: found .*{found}.*; expected .*{expected}") as error:
        read(line)
    assert "\n" not in str(error.value)


def test_a_line_whose_two_sides_differ_by_more_than_2_percent_is_refused():
    read(": baseline 2.03 us = 8 * rows * cols / dram_copy").require_arithmetic(SHAPE)
    with pytest.raises(
        BenchmarkError, match=r"optimized_x.cu:2: found 2.05 µs = 8 \* rows \* cols / dram_copy, which is 2 µs on h200; exp"
    ):
        read(": baseline 2.05 us = 8 * rows * cols / dram_copy").require_arithmetic(SHAPE)


def test_a_model_without_a_card_is_held_to_nothing_but_arithmetic_without_constants():
    read(": baseline 9 s = rows / dram_copy on b200").require_arithmetic(SHAPE)
    with pytest.raises(BenchmarkError, match="which is 1 s on b200"):
        read(": baseline 9 s = 1 on b200").require_arithmetic(SHAPE)


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("rows / dram_latency", r"'dram_latency' in `rows / dram_latency`; expected a constant of the card or an entry of \['cols', 'r"),
        ("rows / (cols - 1000)", "where float division by zero"),
        ("9 ** 999", "where math range error"),
        ("1 - rows", "which is -999; expected a finite figure of 0 or more"),
    ],
)
def test_an_equation_that_comes_to_nothing_is_one_sentence_with_file_and_line(expression, message):
    with pytest.raises(BenchmarkError, match=rf"^optimized_x.cu:2: found .*{message}"):
        read(f": baseline 3 s = {expression}").require_arithmetic(SHAPE)


def test_a_guess_is_a_speedup():
    assert predictions_in("f", "# guess: 1.2x, the host may overlap")[1] == Guess(
        "f:1", "1.2x, the host may overlap", 1.2, "the host may overlap"
    )
    assert predictions_in("f", "# guess: 2x")[1] == Guess("f:1", "2x", 2.0, "")


@pytest.mark.parametrize("text", ["# guess: fast", "# guess: 0x", "# guess@wide: 2x", "# guess:", "# guess: 1.2x\n# guess: 1.3x"])
def test_a_guess_is_one_number(text):
    with pytest.raises(BenchmarkError, match=r"^f:[12]: found .*guess.*; expected"):
        predictions_in("f", text)


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("// predict: baseline 8 ms = 8e-3", "predicts"),
        ("# Predicts: baseline 8 ms = 8e-3", "predicts"),
        ("// predicts baseline 8 ms = 8e-3", "predicts"),
        ("// predicts : baseline 8 ms = 8e-3", "predicts"),
        ("// predicts counter a = 0.5 x baseline", "predicts"),
        ("// Prediction: optimized 1.09 ms = 412e9 / tf32", "predicts"),
        ("// prove: wgmma_wait", "proves"),
        ("// Proves: wgmma_wait", "proves"),
        ("// PROVES: wgmma_wait", "proves"),
        ("// proves wgmma", "proves"),
        ("// proves wgmma_wait", "proves"),
        ("// proves registers <= 64", "proves"),
        ("// proves counter dram__bytes.sum < 0.5 x baseline", "proves"),
        ("# proof: launches == 1", "proves"),
        ("# proof: it holds", "proves"),
        ("# Proof: more wgmma_wait in gemm", "proves"),
        ("# Guess: 1.2x", "guess"),
        ("# guess 1.2x", "guess"),
    ],
)
def test_what_looks_like_a_claim_and_is_none_is_refused(tmp_path, line, key):
    assert lookalike(line) == key
    path = tmp_path / "optimized_x.cu"
    path.write_text(f"// Idea.\n{line}\n")
    with pytest.raises(BenchmarkError, match=rf"optimized_x.cu:2: found .*; expected (`{key}:`|'{key}')"):
        read_directives(path)


@pytest.mark.parametrize(
    "line",
    [
        "// proves: wgmma_wait",
        "// predicts: baseline 8 ms = 8e-3",
        "// predicts@long: baseline 8 ms = 8e-3",
        "// proves that the barrier is needed",
        "// Proves nothing of speed.",
        "// Proof: by induction on the number of steps.",
        "// proved, as no stand-in can show it:",
        "// predicts the time of a launch: 3 us",
        "// The baseline proves wgmma",
        "// Predicted by the roofline.",
        "// Guess: the compiler merges both loads.",
        "// guess how many blocks fit",
        "x = 1  # proves wgmma",
    ],
)
def test_an_honest_comment_is_none(line):
    assert lookalike(line) == ""


def test_no_comment_of_the_tree_is_taken_for_a_claim():
    files = [path for folder in (*ROOT.glob("ch*"), ROOT / "common", ROOT / "tools") for path in folder.rglob("*.*")]
    texts = {path: path.read_text(encoding="utf-8") for path in files if path.suffix in (".py", ".cu", ".cuh", ".h", ".cpp")}
    assert len(texts) > 200
    assert [(path.name, line) for path, text in texts.items() for line in text.splitlines() if lookalike(line)] == []


@pytest.fixture
def pair(tmp_path):
    """A pair of two timed shapes whose optimized side says what a test writes, and its `require_predictions`."""
    (tmp_path / "workload_x.py").write_text(
        '"""X."""\nSIDE = 1 << 10\nWORKLOAD = Workload(time_at={"wide": {"n": SIDE, "eps": 0.5}, "deep": {"n": 2 * SIDE, "eps": 0.5}})\n'
    )
    sides = {side: tmp_path / f"{side}_x.cu" for side in ("baseline", "optimized")}
    sides["baseline"].write_text("// Baseline.\n// predicts: baseline 1024 s = n\n")

    def check(line):
        sides["optimized"].write_text(f"// Idea.\n// predicts{line}\n")
        return require_predictions(tmp_path / "workload_x.py", sides, timed_shapes(tmp_path / "workload_x.py"))

    return check


def test_each_line_is_checked_at_its_own_shape(pair):
    assert pair("@deep: optimized 2048 s = n") == 2
    with pytest.raises(BenchmarkError, match="which is 1024 s"):
        pair(": optimized 2048 s = n")


def test_a_side_and_a_shape_that_do_not_exist_are_named(pair):
    with pytest.raises(BenchmarkError, match=r"optimized_x.cu:2: found the side 'optimised'; expected one of baseline, optimized"):
        pair(": optimised 1024 s = n")
    with pytest.raises(BenchmarkError, match=r"optimized_x.cu:2: found the timed shape 'flat'; expected one of wide, deep"):
        pair("@flat: optimized 1024 s = n")


@pytest.mark.parametrize("line", [": baseline 1.01 s = 1.01", "@wide: baseline 1.01 s = 1.01"])
def test_a_figure_is_predicted_once(pair, line):
    with pytest.raises(
        BenchmarkError, match=r"optimized_x.cu:2: found baseline time predicted again, after .*baseline_x.cu:2; expected one"
    ):
        pair(line.replace("1.01", "1024"))
    pair(line.replace("1.01", "1024") + " on b200")
    pair(": baseline peak_bytes 8 KiB = 8 * n")


def test_a_pair_guesses_once(pair, tmp_path):
    pair(": baseline peak_bytes 8 KiB = 8 * n\n// guess: 2x")
    (tmp_path / "workload_x.py").write_text('"""X."""\n# guess: 3x\nWORKLOAD = Workload(time_at={"n": 1024})\n')
    with pytest.raises(BenchmarkError, match=r"workload_x.py:2: found a second `guess:`, after .*optimized_x.cu:3; expected one a pair"):
        pair(": baseline peak_bytes 8 KiB = 8 * n\n// guess: 2x")


def test_a_lent_file_speaks_of_its_own_pair(tmp_path):
    for name in ("workload_x.py", "optimized_x.cu"):
        (tmp_path / name).write_text("// Idea.\n")
    (tmp_path / "baseline_other.cu").write_text("// Idea.\n// predicts: baseline 1 s = 1\n")
    sides = {"baseline": tmp_path / "baseline_other.cu", "optimized": tmp_path / "optimized_x.cu"}
    assert predictions_of(tmp_path / "workload_x.py", sides) == ((), None)


def test_shapes_are_read_as_text_and_where_they_are_not_written_out_there_are_none(tmp_path):
    path = tmp_path / "workload_x.py"
    for text, found in {
        "Workload(time_at={'n': 1 << 4})": {"default": {"n": 16}},
        "from a import B\nWorkload(time_at=B.time_at)": {},
        "Workload(time_at=": {},
        "Workload()": {},
    }.items():
        path.write_text(text)
        assert timed_shapes(path) == found


def test_directives_show_what_is_predicted(tmp_path):
    path = tmp_path / "optimized_x.cu"
    path.write_text("// Idea.\n// predicts: baseline 8 us = 8e-6\n// predicts@a: optimized 4 us = 4e-6  (half)\n// guess: 2x\n")
    found = read_directives(path)
    assert (len(found.predicts), found.guess.value) == (2, 2.0)
    assert found.as_text() == {"predicts": "baseline 8 us = 8e-6; optimized 4 us = 4e-6  (half)", "guess": "2x"}


def test_a_model_is_known_by_the_name_that_the_driver_gives_it():
    assert is_model("NVIDIA H100 80GB HBM3", "h100")
    assert is_model("NVIDIA H200", "h200")
    assert not is_model("NVIDIA GH200 480GB", "h200")
    assert not is_model("NVIDIA H200", "h20")


def test_the_committed_card_is_found_by_the_driver_s_name(monkeypatch):
    monkeypatch.undo()
    assert card_for("NVIDIA H200") == card_of("h200")
    assert card_of("h200").values["dram_copy"] > 1e12
    assert card_for("NVIDIA Test") is None


def test_a_file_that_is_no_card_is_one_sentence(tmp_path):
    for text in ("{", "[]", "{}", json.dumps({"model": "h200", "constants": {"a": {"value": 1}}})):
        (tmp_path / "h200.json").write_text(text)
        with pytest.raises(BenchmarkError, match=r"h200.json: .*; expected a card that tools/checks/cards.py wrote"):
            read_card(tmp_path / "h200.json")


def test_amounts_have_a_unit_that_people_read():
    said = {(1.09e-3, "s"): "1.09 ms", (8e-6, "s"): "8 µs", (3.2e9, "bytes"): "3.2 GB", (0.125, "x baseline"): "0.125 x baseline"}
    said |= {(7, ""): "7", (16384, ""): "16384", (67.1e6, ""): "67.1 million", (0.0, "s"): "0 s"}
    assert {amount: amount_text(*amount) for amount in said} == said

"""What a page says of a prediction: its ratio and terms, whether it missed, and where it says what; equations go before `expects:`."""

from types import SimpleNamespace

import pytest

from common.python.gate.expectations import keep_expectations
from tests.support.factories import an_expectation
from tools.checks import pages, predicted_ratios
from tools.checks.predicted_ratios import Prediction, lines_in, prediction_at, predictions_in


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("3x, 36 bytes a float against 8", ["3x"]),
        ("1x", ["1x"]),
        ("7.5x, 412 GFLOP; 1x on a CPU, which", ["7.5x"]),
        ("1.94x at k = 8192 and 2.23x at 1024: in former rows", ["1.94x at k = 8192", "2.23x at 1024"]),
        ("1.87x at k = 8184, timed before: a step; 1.04x at 8192: an H200 joins", ["1.87x at k = 8184", "1.04x at 8192"]),
        ("about 3x", []),
        ("", []),
    ],
)
def test_the_ratios_of_a_line_are_the_first_or_those_at_shapes(text, found):
    assert [str(prediction) for prediction in predictions_in(text)] == found


def test_a_prediction_is_of_the_shape_whose_name_or_own_value_it_has():
    shapes = {
        name: an_expectation(shape=shape) for name, shape in {"deep": {"m": 8192, "k": 8192}, "flat one": {"m": 8192, "k": 1024}}.items()
    }
    deep, flat = Prediction("1.9x", "k = 8192"), Prediction("2.2x", "the flat shape")
    assert prediction_at([deep, flat], "deep", shapes) is deep
    assert prediction_at([deep, flat], "flat one", shapes) is flat
    assert prediction_at([deep], "flat one", shapes) is None, "a prediction of another shape"
    assert prediction_at([deep, deep], "deep", shapes) is None, "two that may be meant"
    assert prediction_at([Prediction("3x")], "flat one", shapes).ratio == 3.0, "one of every shape"


def a_term(subject="speedup", predicted=3.0, measured=3.1, **changes):
    ratio = measured / predicted if predicted and measured else None
    fields = {"unit": "x", "ratio": ratio, "missed": bool(ratio and max(ratio, 1 / ratio) > 1.25), "note": ""}
    rest = {"expression": "baseline / optimized", "is_guess": False, "why": ""}
    return SimpleNamespace(subject=subject, predicted=predicted, measured=measured, **(fields | rest | changes))


EQUATION = "baseline 3 ms = 36 * n / l2"
SHOWN = "baseline 3 ms on the H200 = 36 * n / l2"


@pytest.fixture
def told(chapter, monkeypatch):
    """What the pages say of a pair with equations of which these are the terms: the cell of its row, and its section."""
    optimized = chapter / "optimized_transpose.cu"
    optimized.write_text(optimized.read_text().replace("expects: 3x, 36 bytes a float against 8", f"predicts: {EQUATION}"))
    keep_expectations(chapter / "expectations_h200.json", "transpose", {"default": an_expectation(3.1)})

    def pages_of(*terms):
        monkeypatch.setattr(predicted_ratios, "terms_at", lambda *_: list(terms))
        assert pages.main([], chapter.parent) == 0
        row = next(line for line in (chapter / "README.md").read_text().splitlines() if line.startswith("| [transpose]"))
        return row.split(" | ")[2], (chapter / "RESULTS.md").read_text().split("\n## transpose\n")[1].split("\n## ")[0]

    return pages_of


@pytest.mark.parametrize(
    ("terms", "cell"),
    [
        ([a_term()], "3x"),
        ([a_term(predicted=2.234)], "2.23x (missed)"),
        ([a_term("baseline", 1.0, 2.0), a_term()], "3x (a term missed)"),
        ([a_term(predicted=1.2, is_guess=True)], "guess 1.2x (missed)"),
        ([a_term("peak_bytes, baseline over optimized", 2.0, 2.1)], "2x"),
        ([a_term("output_tokens_per_s, baseline over optimized", 0.5, 0.48)], "2x"),
        ([a_term("output_tokens_per_s, baseline over optimized", 0.5, 0.25)], "2x (missed)"),
        ([a_term("optimized", 0.8, 0.81, unit="x baseline")], "1.25x"),
        ([a_term("optimized", 0.8, 0.4, unit="x baseline")], "1.25x (missed)"),
        ([a_term("counter a", 0.1, 0.1, unit="x baseline")], "see RESULTS.md"),
        ([a_term("counter a", 0.1, 0.1)], "see RESULTS.md"),
        ([a_term(predicted=None, why="no card of it is kept")], "see RESULTS.md"),
        ([], "see RESULTS.md"),
    ],
)
def test_the_cell_has_the_ratio_of_the_equations_and_what_missed(told, terms, cell):
    assert told(*terms)[0] == cell


def test_a_ratio_that_is_of_another_model_alone_is_shown_with_it(chapter, told):
    optimized = chapter / "optimized_transpose.cu"
    both = "predicts: baseline 3 ms on h100\n// predicts: optimized 1 ms on h100"
    optimized.write_text(optimized.read_text().replace(f"predicts: {EQUATION}", both))
    assert told(a_term("optimized", None, None, why="it is of the H100 alone"))[0] == "3x on H100"


def test_of_a_further_shape_without_a_line_nothing_was_predicted(chapter, told):
    keep_expectations(chapter / "expectations_h200.json", "transpose", {"wide": an_expectation(2.0)})
    told()
    rows = [line.split(" | ")[2] for line in (chapter / "README.md").read_text().splitlines() if "transpose @wide" in line]
    assert rows == ["none"]


def test_a_ratio_that_no_equation_has_is_that_of_the_expects_line(chapter, told):
    optimized = chapter / "optimized_transpose.cu"
    optimized.write_text(optimized.read_text().replace("// proves", "// expects: 2x, guessed\n// proves", 1))
    cell, section = told(a_term("counter a", 0.1, 0.1, expression="", unit="x"))
    assert cell == "2x (missed)"
    assert "| counter a |  | 0.1x | 0.1x | 1.00 |\n\nH200: predicted 2x, measured 3.10x: missed, 1.55 times apart." in section


def test_every_term_stands_beside_its_measurement(told):
    terms = [a_term(), a_term("speedup of once", 1.5, 3.0, expression=""), a_term("optimized", None, None, why="it is of the B200 alone")]
    section = told(*terms)[1]
    assert f"\n  - predicted: {SHOWN}\n" in section
    assert section.split("H200, predicted against measured:\n\n")[1].split("\n\n")[0].splitlines()[2:] == [
        "| speedup | `baseline / optimized` | 3x | 3.1x | 1.03 |",
        "| speedup of once |  | 1.5x | 3x | 2.00, missed |",
        "| optimized | `baseline / optimized` | not compared: it is of the B200 alone | not measured yet |  |",
    ]


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("optimized 1.09 ms = 412e9 / tf32  (tensor cores)", "optimized 1.09 ms on the H200 = 412e9 / tf32  (tensor cores)"),
        ("baseline joules 2 J = 4e-3 * 500", "baseline joules 2 J on the H200 = 4e-3 * 500"),
        ("baseline 0.112 ms = 200000 / sm_clock on h100", "baseline 0.112 ms = 200000 / sm_clock on h100"),
        ("optimized = 0.5 x baseline", "optimized = 0.5 x baseline"),
        ("counter dram__bytes_read.sum = 0.125 x baseline", "counter dram__bytes_read.sum = 0.125 x baseline"),
        ("optimized 1.2 GB = 1.2e9", "optimized 1.2 GB = 1.2e9"),
        ("optimized 256 KB = sm_count * 1940", "optimized 256 KB on the H200 = sm_count * 1940"),
    ],
)
def test_a_figure_of_one_gpu_model_is_shown_with_it(tmp_path, line, shown):
    side = tmp_path / "optimized_a.py"
    side.write_text(f"# predicts: {line}\n# predicts@deep: {line}\n# guess: 2x, why\n")
    assert lines_in(side) == [shown, f"@deep {shown}", "guess: 2x, why"]


def test_an_equation_in_the_workload_or_the_pairs_own_baseline_is_a_prediction_and_a_lent_one_is_not(chapter, capsys):
    wide = chapter / "optimized_transpose_wide.py"
    wide.write_text('"""Optimized: Wider."""\n')
    assert pages.main([], chapter.parent) == 1
    assert "found no `predicts:`, `guess:` or `expects:` line; expected the times or the ratio" in capsys.readouterr().err
    workload = chapter / "workload_transpose.py"
    workload.write_text('"""Transpose."""\n# guess: 1.2x, nobody knows\n')
    assert pages.main([], chapter.parent) == 0
    assert "  - predicted: guess: 1.2x, nobody knows\n" in (chapter / "RESULTS.md").read_text().split("\n## transpose_wide\n")[1]
    workload.write_text('"""Transpose."""\n')
    (chapter / "baseline_transpose.cu").write_text(f"// Baseline: plain.\n// predicts@wide: {EQUATION}\n")
    assert pages.main([], chapter.parent) == 0
    assert f"  - predicted: @wide {SHOWN}\n" in (chapter / "RESULTS.md").read_text()

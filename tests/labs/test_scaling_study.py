"""The scripts of labs/ultimate_moe_inference: what they say of a run's document, what they keep, and what they refuse."""

import json
import subprocess
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import pytest

from common.python.profile.steps import GpuWork, SeenStep, chrome_trace
from common.python.project import PROJECT_ROOT
from labs.ultimate_moe_inference import run_full_analysis
from labs.ultimate_moe_inference.scaling_study import (
    batch_size_sweep,
    compare_optimizations,
    precision_sweep,
    roofline_analyzer,
    run_scaling_study,
    study,
)

SCRIPTS = (run_full_analysis, batch_size_sweep, precision_sweep, roofline_analyzer, run_scaling_study, compare_optimizations)
TIMES = {"baseline": 8000.0, "layer1_basics": 4000.0, "layer5_compile": 2000.0, "optimized": 1000.0}  # made up, in ns


def row(times=TIMES, shares=True):
    """A row as benchmark_cli writes it, of made-up times."""
    limits = {side: {"key": "dram_read", "share": 500 / ns, "ceiling_ns": 500.0} for side, ns in times.items()}
    timing = {
        "time_ns": {side: {"estimate": ns} for side, ns in times.items()},
        "shares": limits if shares else {},
        "work": {"dram_read": 9e8},
    }
    return {"target": study.TARGET, "status": "SUCCEEDED", "reason": "", "idea": "All layers.", "timings": {"default": timing}}


def left_by_a_run(folder, rows):
    """A run's folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metrics.json").write_text(json.dumps({"rows": rows}))
    return folder


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda module: module.__name__.rpartition(".")[2])
def test_help_says_what_it_does(script, capsys):
    with pytest.raises(SystemExit) as ended:
        script.main(["--help"])
    assert ended.value.code == 0
    assert script.__doc__.splitlines()[0].split()[0] in capsys.readouterr().out


def test_each_layer_is_compared_with_the_one_before_and_with_the_baseline(tmp_path, capsys):
    compare_optimizations.main([str(left_by_a_run(tmp_path, [row()]))])
    assert "| layer5_compile | 2.0 | 2.00x | 1.2x to 1.4x, compiling | not decided | 4.00x | 3.5x |" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("low", "high", "verdict"),
    [(1.01, 1.2, "gains"), (0.95, 1.1, "gains nothing"), (1.0, 1.1, "gains nothing"), (0.8, 0.99, "loses")],
)
def test_a_layer_that_gains_nothing_is_told(low, high, verdict):
    done = row()
    done["timings"]["default"]["rungs"] = {"layer1_basics": {"estimate": 1.05, "low": low, "high": high}}
    text = compare_optimizations.report(done)
    assert f"| 1.05x [{low:.2f}, {high:.2f}] | 1.05x to 1.1x | {verdict} |" in text
    assert ("- layer1_basics" in text) == (verdict != "gains")


def test_each_side_of_the_lab_has_the_books_expectation():
    sides = {file.stem.removeprefix("optimized_") for file in (PROJECT_ROOT / "labs/ultimate_moe_inference").glob("optimized_*.py")}
    assert set(compare_optimizations.BOOK) == sides - {"ultimate_inference", "ultimate_inference_ranks"} | {"optimized"}


def test_a_sweep_goes_on_where_it_ended_and_draws_all_points(tmp_path, monkeypatch, capsys):
    left_by_a_run(tmp_path / "20b_sequences_1", [row()])
    ran = []

    def run(command, **_options):
        ran.append(command)
        left_by_a_run(tmp_path / "20b_sequences_4", [row({side: 2 * ns for side, ns in TIMES.items()})])

    monkeypatch.setattr(study.measured, "__defaults__", (run,))
    batch_size_sweep.main(["--batch-sizes", "1", "4", "--folder", str(tmp_path)])
    assert [command[command.index("--kwargs") + 1] for command in ran] == ["sequences=4"]
    said = capsys.readouterr()
    assert "| 4 | 250000 | 500000 | 1000000 | 2000000 |" in said.out  # 4 tokens in 16, 8, 4 and 2 µs
    assert "2 of 2: gpt-oss-20b, sequences = 4" in said.err
    lines = ET.parse(tmp_path / "batch_size_20b.svg").getroot().findall("{*}polyline")
    assert [len(line.get("points").split()) for line in lines] == [2, 2, 2, 2]


def test_without_a_gpu_nothing_is_started(tmp_path, monkeypatch):
    monkeypatch.setattr(study, "describe_machine", lambda _root: SimpleNamespace(gpus=()))
    monkeypatch.setattr(study.subprocess, "run", lambda *_arguments, **_options: pytest.fail("a run was started"))
    for script in (batch_size_sweep, precision_sweep, run_scaling_study, run_full_analysis):
        with pytest.raises(SystemExit, match="found no GPU; expected one"):
            script.main(["--folder", str(tmp_path / "new")])
    assert not (tmp_path / "new").exists()


def test_with_a_gpu_a_point_is_run(tmp_path, monkeypatch):
    monkeypatch.setattr(study, "describe_machine", lambda _root: SimpleNamespace(gpus=("H200",)))
    assert study.run(["true"]).returncode == 0


def test_the_study_has_batches_precisions_and_layers(tmp_path):
    left_by_a_run(tmp_path / "120b_sequences_2", [row()])
    run_scaling_study.main(["--model", "120b", "--batch-sizes", "2", "--folder", str(tmp_path)])
    text = (tmp_path / "study_120b.md").read_text()
    assert "| 2 | 2.0 | 1.0 | 2.00x |" in text
    assert "## Layers, sequences = 2" in text
    assert (tmp_path / "precision_120b.svg").exists()


def test_a_larger_model_has_more_experts():
    command = study.command_of(study.ROOT / "x", {**study.MODELS["120b"], "sequences": 2})
    assert "experts=128 sequences=2" in command
    assert "--resume" in command


def test_the_roofline_of_one_side(tmp_path, capsys):
    folder = str(left_by_a_run(tmp_path, [row()]))
    roofline_analyzer.main([folder, "--benchmark", "optimized_ultimate_inference"])
    assert "| optimized | 1.0 | dram_read | 0.5 | 50% |" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="--benchmark optimized_layer9: found no such side; expected one of baseline, layer1_basics"):
        roofline_analyzer.main([folder, "--benchmark", "optimized_layer9"])


def test_the_report_has_layers_and_says_that_ceilings_are_missing(tmp_path, monkeypatch):
    calls, code = [], 0
    monkeypatch.setattr(run_full_analysis, "run", lambda command: calls.append(command) or subprocess.CompletedProcess(command, code))
    left_by_a_run(tmp_path, [row(shares=False)])
    run_full_analysis.main(["--quick", "--profile", "all", "--folder", str(tmp_path)])
    text = (tmp_path / "REPORT.md").read_text()
    assert "quick, two calls a side" in text
    assert "expected `benchmark_cli peak` before it" in text
    assert calls[0][-6:] == ["--iterations", "2", "--warmup", "1", "--profile", "deep_dive"]


def test_the_report_of_traced_layers_has_both_breakdowns_and_their_drawings(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(run_full_analysis, "run", lambda command: calls.append(command) or subprocess.CompletedProcess(command, 0))
    left_by_a_run(tmp_path, [row()])
    place = tmp_path / study.TARGET.replace("/", "_").replace(":", "_")
    place.mkdir()
    step = SeenStep((GpuWork("gemm", "kernel", 0.0, 6000.0, 1, 7), GpuWork("Memcpy DtoD", "gpu_memcpy", 8000.0, 10000.0, 2, 7)), 0.0)
    (place / "profile.chrome.json").write_text(chrome_trace({f"{study.TARGET}/{side}": step for side in TIMES}))
    run_full_analysis.main(["--profile", "hta", "--folder", str(tmp_path)])
    text = (tmp_path / "REPORT.md").read_text()
    assert calls[0][-2:] == ["--profile", "minimal"]
    assert "| optimized | 10.0 | 20.0% | 60.0% | 20.0% |" in text
    assert "| optimized | `gemm` | compute | 1 | 6.0 | 6.0 | 6.0 | 75.0% |" in text
    widths = [[float(bar.get("width")) for bar in drawing_in(tmp_path, name)] for name in ("layers", "temporal")]
    assert widths[0] == pytest.approx([480, 240, 120, 60])
    assert widths[1][:3] == pytest.approx([288, 96, 96])
    assert sorted(file.name for file in (tmp_path / "profiling").iterdir()) == [f"{at}_{side}.json" for at, side in enumerate(TIMES)]


def test_the_report_says_where_it_was_measured_and_what_hta_answers(tmp_path):
    left_by_a_run(tmp_path, [row()])
    environment = {"gpus": [{"name": "NVIDIA H200", "driver": "580.1"}], "packages": {"torch": "2.11.0"}}
    (tmp_path / "run.json").write_text(json.dumps({"started": "2026-11-29T06:32:16+00:00", "environment": environment}))
    place = tmp_path / study.TARGET.replace("/", "_").replace(":", "_")
    place.mkdir()
    step = SeenStep((GpuWork("gemm", "kernel", 0.0, 6000.0, 1, 7),), 0.0)
    (place / "profile.chrome.json").write_text(chrome_trace({f"{study.TARGET}/{side}": step for side in TIMES}))
    answers = {side: {"span": 6.0, "idle": 0.0, "compute": 6.0, "other": 0.0} for side in TIMES}
    (tmp_path / "hta.json").write_text(json.dumps({"kinds": {}, "sides": answers}))
    options = run_full_analysis.options_of(["--folder", str(tmp_path)])
    text = run_full_analysis.report(row(), options)
    assert "Measured on 2026-11-29: NVIDIA H200 (driver 580.1); torch 2.11.0.\n" in text
    assert "| optimized | 6.0 | 6.0 | 0.0 | 0.0 | 6.0 | 6.0 | 0.0 | 0.0 |" in text
    assert "](report.html)" not in text  # every link resolves where the report and its drawings alone are kept


def drawing_in(folder, name):
    """The bars of a drawing that the report shows."""
    assert f"({name}.svg)" in (folder / "REPORT.md").read_text()
    return [shape for shape in ET.parse(folder / f"{name}.svg").getroot().findall("{*}rect") if shape.get("height") == "20"]


def test_a_report_without_traces_says_how_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setattr(run_full_analysis, "run", lambda command: subprocess.CompletedProcess(command, 0))
    left_by_a_run(tmp_path, [row()])
    run_full_analysis.main(["--folder", str(tmp_path)])
    assert "`--profile hta` traces one of each layer" in (tmp_path / "REPORT.md").read_text()


def test_a_refused_run_reports_nothing_of_an_earlier_one(tmp_path, monkeypatch):
    monkeypatch.setattr(run_full_analysis, "run", lambda command: subprocess.CompletedProcess(command, 1))
    left_by_a_run(tmp_path, [row()])
    with pytest.raises(SystemExit, match="the run was refused"):
        run_full_analysis.main(["--folder", str(tmp_path)])
    assert not (tmp_path / "REPORT.md").exists()


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([], "found no row of labs/ultimate_moe_inference:ultimate_inference"),
        ([{**row(), "timings": {}, "status": "SKIPPED", "reason": "needs wgmma"}], "SKIPPED, needs wgmma"),
        ([{**row(), "timings": {}, "status": "PASSED"}], "PASSED, checked here and not timed; expected a GPU"),
    ],
)
def test_a_run_without_times_is_refused_in_one_sentence(rows, says, tmp_path):
    with pytest.raises(SystemExit, match=says):
        compare_optimizations.main([str(left_by_a_run(tmp_path, rows))])


def test_a_wrong_number_names_its_flag(capsys):
    with pytest.raises(SystemExit):
        batch_size_sweep.main(["--batch-sizes", "0"])
    assert "--batch-sizes: found '0'; expected a whole number of at least 1" in capsys.readouterr().err


def test_as_a_command_without_a_run(tmp_path):
    script = PROJECT_ROOT / "labs/ultimate_moe_inference/scaling_study/compare_optimizations.py"
    done = subprocess.run([study.BENCHMARK[0], script, tmp_path], cwd=PROJECT_ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1

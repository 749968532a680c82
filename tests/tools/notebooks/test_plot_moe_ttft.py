"""The notebook of serving rows, executed on a run of the toy made here and now; and the lists that it plots."""

import json
import os
import subprocess
import sys

import nbformat
import pytest

from common.python.errors import BenchmarkError
from common.python.report.run_folder import RunFolder
from common.python.results import Block, Interval, ServedRequest, ServingFigures
from tests.support.commands import ROOT, ROOT_FIRST, benchmark_here
from tests.support.factories import a_row, a_run, a_timing
from tools.notebooks.served_requests import context_held, in_flight, loads_of, newest_run, peak_memory, requests_of, serving_rows

NOTEBOOK = ROOT / "tools/notebooks/plot_moe_ttft.ipynb"
AXES = {"ttft": 1, "throughput": 2, "context": 2, "memory": 1}  # of a run on a CPU, which has no device memory

# What is asked of each axes when the notebook is through: its words, and how many points it shows.
ASKED = """
import json

def told(axes):
    points = [line.get_xydata() for line in axes.get_lines()] + [each.get_offsets() for each in axes.collections if len(each.get_offsets())]
    legend = axes.get_legend()
    return {
        "words": [axes.get_title(), axes.get_xlabel(), axes.get_ylabel()],
        "points": sum(len(each) for each in points),
        "legend": [text.get_text() for text in legend.get_texts()] if legend else [],
    }

print(json.dumps({name: [told(axes) for axes in figure.axes] for name, figure in figures.items()}))
"""

# Executes standard input and writes the outputs of its last cell; a process of its own, for what Jupyter warns of is not of this project.
EXECUTE = """
import sys
import nbformat
from nbclient import NotebookClient

notebook = nbformat.reads(sys.stdin.read(), 4)
NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
pictures = sum("image/png" in output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", ()))
print(pictures, notebook.cells[-1].outputs[0].text)
"""


@pytest.mark.slow
def test_every_figure_has_data_and_words(tmp_path):
    arguments = ["--root", ROOT / "tests/serving", "--targets", "toy:toy", "--iterations", "1", "--sweep", "arrival_poisson=0.5,1.1"]
    done = benchmark_here("run", *arguments, "--artifacts-dir", tmp_path / "run", scratch=tmp_path)
    assert done.code == 0, done
    notebook = nbformat.read(NOTEBOOK, 4)
    given = next(cell for cell in notebook.cells if cell.cell_type == "code")
    assert given.source.startswith("RUNS = []")
    given.source = f"RUNS = [{str(tmp_path / 'run')!r}]"
    notebook.cells.append(nbformat.v4.new_code_cell(ASKED))
    environment = os.environ | {"PYTHONPATH": ROOT_FIRST, "IPYTHONDIR": str(tmp_path / "ipython")}
    executed = subprocess.run(
        [sys.executable, "-c", EXECUTE], input=nbformat.writes(notebook), capture_output=True, text=True, timeout=240, env=environment
    )
    assert executed.returncode == 0, executed.stderr
    pictures, _, text = executed.stdout.partition(" ")
    figures = json.loads(text)
    assert int(pictures) == len(figures)
    assert {name: len(axes) for name, axes in figures.items()} == AXES
    for name, several in figures.items():
        for axes in several:
            assert all(axes["words"]), name
            assert axes["points"] >= 4, name
            assert {side for side in ("baseline", "optimized") if any(side in label for label in axes["legend"])} or axes is not several[0]


def test_the_notebook_is_kept_without_outputs():
    notebook = nbformat.read(NOTEBOOK, 4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert not any(cell.outputs or cell.execution_count for cell in code)


TRACE = (
    ServedRequest(due_us=0, prompt_tokens=10, tokens_us=(1000, 2000, 4000)),
    ServedRequest(due_us=1000, prompt_tokens=20, tokens_us=(3000,)),
)


def a_served_row(**load):
    timing = a_timing()
    units = [
        unit.model_copy(update={"blocks": {side: (Block(seed=1, samples_ns=(4e6,), requests=TRACE),) for side in unit.blocks}})
        for unit in timing.units
    ]
    figures = {name: Interval(estimate=value, low=value, high=value) for name, value in (("output_tokens_per_s", 1e3), ("goodput", 1.0))}
    serving = ServingFigures(slo_ttft_ms=1.0, slo_tpot_ms=1.0, figures={"baseline": figures}, **load)
    return a_row(timings={"default": timing.model_copy(update={"units": tuple(units), "serving": serving})})


def test_a_request_is_seen_with_what_was_in_flight():
    row = a_served_row()
    first, second, *_ = requests_of([row])
    assert (first.in_flight, first.ttft_ms, first.tpot_ms, first.output_tokens) == (1, 1.0, 1.5, 3)
    assert (second.in_flight, second.ttft_ms, second.tpot_ms, second.prompt_tokens) == (2, 2.0, None, 20)
    assert [in_flight(TRACE, at_us) for at_us in (0, 2999, 3000, 4000)] == [1, 2, 1, 0]


def test_context_is_held_from_when_a_request_is_due_to_its_last_token():
    held = context_held([a_served_row()])["ch07:transpose", "baseline"]
    assert held == [(0.0, 10), (1.0, 31), (2.0, 32), (3.0, 12), (4.0, 0)]


def test_a_load_has_the_figures_of_metrics_extractor():
    (load,) = loads_of([a_served_row(offered_per_s=8.0, saturation_per_s=10.0)])
    assert (load.offered_per_s, load.saturation_per_s, load.output_tokens_per_s.estimate) == (8.0, 10.0, 1e3)
    (at_once,) = loads_of([a_served_row()])
    assert at_once.offered_per_s is None


def test_memory_is_of_rows_on_a_gpu():
    row = a_served_row()
    sides = {name: side.model_copy(update={"peak_memory_bytes": None}) for name, side in row.sides.items()}
    assert not peak_memory([row.model_copy(update={"sides": sides})])
    weighed = {name: side.model_copy(update={"peak_memory_bytes": 1 << 30}) for name, side in row.sides.items()}
    assert peak_memory([row.model_copy(update={"sides": weighed})])["ch07:transpose", "baseline"] == 1 << 30


def test_the_newest_run_that_served_is_found(tmp_path):
    for name, rows in (("older", [a_served_row()]), ("other", [a_row()])):
        folder = RunFolder(tmp_path / name, name)
        folder.path.mkdir()
        folder.write_run(a_run(run_id=name))
        for row in rows:
            folder.write_pair(row)
    assert newest_run(tmp_path) == tmp_path / "older"
    with pytest.raises(BenchmarkError, match="found no run of a serving pair"):
        newest_run(tmp_path / "empty")


def test_a_run_that_served_nothing_is_an_error():
    with pytest.raises(BenchmarkError, match="found no timed serving row"):
        serving_rows([ROOT / "tools/pictures/run_h200"])

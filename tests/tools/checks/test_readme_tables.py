"""Generated tables say what committed results show: the front page's, what adversaries got on a GPU, what the bars' trials come to."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from common.python.errors import BenchmarkError, Status
from common.python.machine.description import Gpu, Machine, Source
from common.python.pairs.claims import techniques
from common.python.report.run_folder import RunFolder
from common.python.results import Metrics
from common.python.settings import Settings
from common.python.storage import document_text, read_document, write_whole
from tests.common.python.report.test_role_trace import a_document
from tests.support.commands import ROOT, ROOT_FIRST
from tests.support.factories import a_failure, a_row, a_run, a_timing
from tools.checks import readme_tables
from tools.checks.adversaries import ADVERSARIES, AdversaryResults, Cheat, Outcome, cheats, complaint, keep_results, results_of, unmeasured
from tools.checks.readme_tables import EXAMPLE_RUN, TEMPLATES
from tools.noise.bar_figures import Bars, Trial

TABLE = """\
# The table

| cheat | status | its reason says | on | how it lies |
| --- | --- | --- | --- | --- |
| sum_zeros | WRONG_RESULT | is 0.0 | both | returns zeros |
| sum_loops | TIMEOUT | took | cpu | never returns |
| sum_never_runs | UNPROVEN | ld_128bit | gpu | has it \\ in another kernel |
| sum_slow | PASSED | optimized > 5 ms | gpu | a control: right, and slow |

## Not caught yet

| cheat | status it must get |
| --- | --- |
"""
README = """\
# A project

<!-- output: begin -->
<!-- output: end -->
<!-- chapters: begin -->
<!-- chapters: end -->

After.
"""
PAGES = {
    "README.md": README,
    "tools/noise/README.md": "# Bars\n\n<!-- bars: begin -->\n<!-- bars: end -->\n",
    "tests/adversaries/README.md": "# Cheats\n\n<!-- adversaries: begin -->\n<!-- adversaries: end -->\n\nAfter.\n",
    "tests/compiled/README.md": "# Compiled\n\n<!-- compiled: begin -->\n<!-- compiled: end -->\n",
    "common/docs/writing-a-pair.md": "# A pair\n\n<!-- example: begin -->\n<!-- example: end -->\n",
    "common/docs/first-hour-on-blackwell.md": "# An hour\n\n<!-- blackwell: begin -->\n<!-- blackwell: end -->\n",
    "common/docs/proving.md": "# Claims\n\n<!-- techniques: begin -->\n<!-- techniques: end -->\n",
}
MACHINE = Machine(
    cpu="A CPU", architecture="x86_64", cores=2, numa_nodes=1, memory_bytes=1, kernel="6", python="3.11", packages={"torch": "2"},
    gpus=(Gpu(index=0, name="NVIDIA Test", uuid="GPU-1", capability=(9, 0), memory_bytes=1, driver="1"),),
    project=Source(commit="0123456789abcdef", dirty=False),
)  # fmt: skip
SLOW_NS = {"baseline": 1e5, "optimized": 6e6}


@pytest.fixture
def project(tmp_path):
    """A tree with a README, four cheats and no results."""
    folder = tmp_path / "tests" / "adversaries"
    (folder / "cheats").mkdir(parents=True)
    (folder / "table.md").write_text(TABLE)
    for cheat in cheats(folder):
        (folder / "cheats" / f"optimized_{cheat.name}.py").write_text(f'"""{cheat.how}."""\n')
    for name, text in PAGES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    shutil.copytree(ROOT / EXAMPLE_RUN, tmp_path / EXAMPLE_RUN)
    return tmp_path


def a_slow_row():
    return a_row("cheats:sum_slow", timings={"default": a_timing(SLOW_NS)})


@pytest.fixture
def run_folder(tmp_path):
    """The folder of a run of the cheats on a GPU."""
    place = tmp_path / "somewhere" / "run"
    folder = RunFolder.create(Settings(artifacts_dir=place), "20260102_030405")
    folder.write_pair(a_failure(target="cheats:sum_zeros", reason=f"{place.parent}/tree/cheats: output y[0] is 0.0; expected 1.5"))
    folder.write_pair(a_failure("UNPROVEN", target="cheats:sum_never_runs", reason="found no ld_128bit; expected one"))
    folder.write_pair(a_slow_row())
    folder.write_run(a_run(environment=MACHINE.model_dump(mode="json")))
    return place


def keep(project, run_folder, name="h200", device="NVIDIA Test", **changes):
    folder = project / "tests" / "adversaries"
    results = results_of(run_folder, folder)
    results = results.model_copy(update={"device": device, "runs": tuple(run.model_copy(update=changes) for run in results.runs)})
    write_whole(folder / f"results_{name}.json", document_text(results))
    return results


CHEATS, BARS = "tests/adversaries/README.md", "tools/noise/README.md"


def written(project, page=CHEATS):
    assert readme_tables.main([], project) == 0
    return (project / page).read_text()


def rows_of(text):
    return {line.split(" | ")[0][2:]: line.strip("|").split(" | ")[2:] for line in text.splitlines() if line.startswith("| sum")}


def test_without_results_nothing_is_measured_yet(project):
    text = written(project)
    assert "Not measured yet." in text
    assert "Not measured yet." in (project / BARS).read_text()
    assert rows_of(text) == {
        "sum_zeros": ["WRONG_RESULT", "not measured yet", "", " "],
        "sum_never_runs": ["UNPROVEN", "not measured yet", "", " "],
        "sum_slow": ["PASSED", "not measured yet", "", " "],
    }
    assert text.startswith("# Cheats\n\n<!-- adversaries: begin -->\n")
    assert text.endswith("<!-- adversaries: end -->\n\nAfter.\n")


def test_the_check_fails_and_writes_nothing_until_the_tables_are_written(project, run_folder, capsys):
    assert readme_tables.main(["--check"], project) == 1
    assert {name: (project / name).read_text() for name in PAGES} == PAGES
    assert "README.md: differs; expected what tools/checks/readme_tables.py writes" in capsys.readouterr().out
    written(project)
    assert readme_tables.main(["--check"], project) == 0
    keep(project, run_folder)
    before = {name: (project / name).read_text() for name in PAGES}
    assert readme_tables.main(["--check"], project) == 1
    assert {name: (project / name).read_text() for name in PAGES} == before


def test_what_became_of_a_cheat_stands_beside_what_must(project, run_folder):
    keep(project, run_folder)
    text = written(project)
    assert rows_of(text)["sum_zeros"] == ["WRONG_RESULT", "WRONG_RESULT", "2026-01-02", "Test "]
    assert rows_of(text)["sum_slow"] == ["PASSED", "PASSED", "2026-01-02", "Test "]
    assert (
        "- NVIDIA Test: 3 of 3 got the status that they must.\n  - 3 of them with driver 1, torch 2, 2026-01-02, commit 0123456789\n"
        in text
    )


def test_gpus_of_two_models_share_a_row(project, run_folder):
    keep(project, run_folder)
    first = keep(project, run_folder, "b200", device="NVIDIA Newer", date="2026-02-03")
    assert rows_of(written(project))["sum_zeros"][1:] == ["WRONG_RESULT; WRONG_RESULT", "2026-02-03; 2026-01-02", "Newer; Test "]
    keep(project, run_folder, "b200", device="NVIDIA Newer", cheats={"sum_slow": first.cheats["sum_slow"]})
    assert rows_of(written(project))["sum_zeros"][1:] == ["not measured yet; WRONG_RESULT", "2026-01-02", "Test "]


def test_a_cheat_that_got_away_is_told_and_not_counted(project, run_folder):
    results = keep(project, run_folder)
    got = results.cheats["sum_zeros"].model_copy(update={"status": Status.PASSED, "reason": ""})
    keep(project, run_folder, cheats=results.cheats | {"sum_zeros": got})
    text = written(project)
    assert rows_of(text)["sum_zeros"][1] == "found PASSED; expected WRONG_RESULT"
    assert ": 2 of 3 got the status" in text


def test_a_cheat_that_changed_since_counts_as_not_measured(project, run_folder):
    keep(project, run_folder)
    (project / "tests/adversaries/cheats/optimized_sum_slow.py").write_text('"""Otherwise."""\n')
    text = written(project)
    assert rows_of(text)["sum_slow"][1] == "not measured since it changed"
    assert ": 2 of 3 got the status" in text


@pytest.mark.parametrize(
    ("says", "status", "reason", "sentence"),
    [
        ("is 0.0", "WRONG_RESULT", "y[0] is 0.0", ""),
        ("is 0.0", "WRONG_RESULT", "y[0] is nan", "found the reason y[0] is nan; expected is 0.0 in it"),
        ("is 0.0", "CRASHED", "is 0.0", "found CRASHED: is 0.0; expected WRONG_RESULT"),
        ("-", "PASSED", "", ""),
        ("optimized > 5 ms", "PASSED", "", ""),
        ("optimized > 7 ms", "PASSED", "", "found optimized at 6 ms; expected > 7 ms"),
        ("baseline < 200 us", "PASSED", "", ""),
        ("baseline < 50 us", "PASSED", "", "found baseline at 100 us; expected < 50 us"),
    ],
)
def test_an_outcome_is_judged_by_its_row(says, status, reason, sentence):
    must = "PASSED" if status == "PASSED" else "WRONG_RESULT"
    times = SLOW_NS if status == "PASSED" else {}
    assert complaint(Cheat("sum", must, says, "gpu", ""), Outcome(status=status, reason=reason, time_ns=times, sha256="")) == sentence


def test_results_say_where_they_were_measured_and_name_no_folder_of_that_machine(project, run_folder):
    results = results_of(run_folder, project / "tests" / "adversaries")
    (run,) = results.runs
    assert (results.device, run.uuid, run.driver, run.torch, run.date) == ("NVIDIA Test", "GPU-1", "1", "2", "2026-01-02")
    assert run.commit == "0123456789abcdef"
    assert results.cheats["sum_zeros"].reason == "tree/cheats: output y[0] is 0.0; expected 1.5"
    assert results.cheats["sum_slow"].time_ns == SLOW_NS


def test_a_later_run_of_some_cheats_leaves_what_is_known_of_others(project, run_folder):
    folder = project / "tests" / "adversaries"
    path = folder / "results_h200.json"
    assert unmeasured(path, folder) == {"sum_zeros", "sum_never_runs", "sum_slow"}
    first = keep(project, run_folder)
    assert unmeasured(path, folder) == set()
    (folder / "cheats/optimized_sum_slow.py").write_text('"""Otherwise."""\n')
    assert unmeasured(path, folder) == {"sum_slow"}
    outcome = first.cheats["sum_slow"]
    keep(project, run_folder, date="2026-01-01", cheats={"sum_zeros": first.cheats["sum_zeros"], "sum_slow": outcome})
    write_whole(run_folder / "metrics.json", document_text(Metrics(run_id="20260102_030405", rows=(a_slow_row(),))))
    keep_results(path, run_folder, folder)
    kept = read_document(path, AdversaryResults)
    assert [(run.date, list(run.cheats)) for run in kept.runs] == [("2026-01-01", ["sum_zeros"]), ("2026-01-02", ["sum_slow"])]
    assert unmeasured(path, folder) == {"sum_never_runs"}
    text = written(project)
    assert "- NVIDIA Test: 2 of 3 got the status that they must.\n  - 1 of them with driver 1, torch 2, 2026-01-01, " in text
    assert [cells[1:] for cells in rows_of(text).values()] == [
        ["WRONG_RESULT", "2026-01-01", "Test "],
        ["not measured yet", "", " "],
        ["PASSED", "2026-01-02", "Test "],
    ]


def test_results_of_another_model_are_not_joined(project, run_folder):
    keep(project, run_folder, device="NVIDIA Other")
    with pytest.raises(BenchmarkError, match="found results of NVIDIA Other; expected those of NVIDIA Test"):
        keep_results(project / "tests/adversaries/results_h200.json", run_folder, project / "tests" / "adversaries")


def test_results_that_cannot_be_read_are_an_error_that_names_the_file(project, capsys):
    (project / "tests/adversaries/results_h200.json").write_text("{}")
    assert readme_tables.main([], project) == 1
    assert "results_h200.json: no schema_version" in capsys.readouterr().err
    assert (project / "README.md").read_text() == README


def test_a_readme_without_markers_is_an_error(project, capsys):
    (project / "README.md").write_text("# A project\n")
    assert readme_tables.main([], project) == 1
    assert "README.md: found no table to write; expected the lines <!-- output: begin -->" in capsys.readouterr().err


def test_the_example_is_what_new_writes(project):
    text = written(project, "common/docs/writing-a-pair.md")
    for name in ("workload.py", "baseline.py", "optimized.cu"):
        assert (TEMPLATES / name).read_text().rstrip() in text


def test_the_techniques_are_those_of_the_claims(project):
    text = written(project, "common/docs/proving.md")
    assert text.count("`") == 2 * len(techniques())
    assert "\n| sm_90a, sm_100a | `tma_load_tile`, " in text


def test_the_front_page_shows_what_the_example_run_printed(project):
    text = written(project, "README.md")
    assert "ch07:transpose_vectorized " in text
    assert "| 2 System hardware | memory tiers, NVLink-C2C, placement | not written yet |" in text
    (project / EXAMPLE_RUN / "metrics.json").unlink()
    assert readme_tables.main([], project) == 1


KEEPS = """\
from pathlib import Path
from types import SimpleNamespace
import pytest

def test_keeps(keep_results):
    keep_results(Path({folder!r}))

@pytest.mark.gpu
@pytest.mark.parametrize("row", [SimpleNamespace(name=name) for name in ("sum_zeros", "hold_right")], ids=["sum_zeros", "hold_right"])
def test_cheat(row):
    print("ran", row.name)
"""


def pytest_of_adversaries(tmp_path, run_folder, *arguments):
    """Run pytest on one test that keeps the results of `run_folder`, beside the adversaries' own conftest."""
    folder = tmp_path / "suite"
    folder.mkdir(parents=True)
    shutil.copy(ADVERSARIES / "conftest.py", folder)
    (folder / "test_keeps.py").write_text(KEEPS.format(folder=str(run_folder)))
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = gpu\n")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder), *arguments]
    environment = {**os.environ, "PYTHONPATH": ROOT_FIRST}
    return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)


def real_run_folder(tmp_path):
    folder = RunFolder.create(Settings(artifacts_dir=tmp_path / "run"), "20260102_030405")
    folder.write_pair(a_failure(target="cheats:sum_zeros"))
    folder.write_run(a_run(environment=MACHINE.model_dump(mode="json")))
    return folder.path


@pytest.mark.parametrize("processes", ["0", "1"])
def test_the_option_keeps_the_results_of_a_run(tmp_path, processes):
    done = pytest_of_adversaries(tmp_path, real_run_folder(tmp_path), "-n", processes, "--adversary-results", "kept.json")
    assert done.returncode == 0, done.stdout
    kept = read_document(tmp_path / "kept.json", AdversaryResults)
    assert (kept.device, list(kept.cheats)) == ("NVIDIA Test", ["sum_zeros"])


def test_without_the_option_nothing_is_kept(tmp_path):
    assert pytest_of_adversaries(tmp_path, real_run_folder(tmp_path), "-n", "0").returncode == 0
    assert not list(tmp_path.glob("*.json"))


def test_the_missing_are_run_alone_and_join_what_is_kept(tmp_path):
    kept = real_run_folder(tmp_path)
    write_whole(tmp_path / "kept.json", document_text(results_of(kept)))
    done = pytest_of_adversaries(tmp_path, kept, "-n", "0", "--adversary-results", "kept.json", "--adversary-missing", "-rP")
    assert done.returncode == 0, done.stdout
    assert "ran hold_right" in done.stdout
    assert "2 passed, 1 deselected" in done.stdout  # that of sum_zeros
    assert pytest_of_adversaries(tmp_path / "x", kept, "-n", "0", "--adversary-missing").returncode == 4


def test_an_option_that_names_no_place_is_told_before_anything_runs(tmp_path):
    done = pytest_of_adversaries(tmp_path, tmp_path, "-n", "0", "--adversary-results", "none/kept.json")
    assert done.returncode == 4
    assert "none/kept.json: found no folder for it; expected a file to write" in done.stderr


def a_bars(**changes):
    fields = {"target": "noise:copy", "shape": "64 MB", "verdict": "SAME", "logs": (0.001,) * 6, "time_ns": 36_700.0}
    trial = Trial(**fields, seconds=5.0, stop_reason="decided", date="2026-01-02", commit="")
    return Bars(**{"device": "NVIDIA Test", "uuid": "GPU-1", "driver": "1", "torch": "2", "gate": 0.5, "trials": (trial,)} | changes)


def test_the_bars_have_a_table_for_each_model_and_driver(project):
    for name, bars in {"h200_1": a_bars(), "h200_2": a_bars(uuid="GPU-2"), "h200_3": a_bars(driver="2")}.items():
        write_whole(project / "tools" / "noise" / f"bars_{name}.json", document_text(bars))
    text = written(project, BARS)
    assert text.count("| callable |") == 2
    first, second = [line for line in text.splitlines() if line.startswith("| copy 64 MB |")]
    assert first.endswith("| 0 of 2 | 5.0 | 2 |")
    assert second.endswith("| 0 of 1 | 5.0 | 1 |")
    assert "\n\nNVIDIA Test, driver 1, torch 2, gate 0.5 %; 2026-01-02: 0 of 2 A/A trials red or green (bar 1 in 200)\n" in text


def test_bars_that_cannot_be_read_are_an_error_that_names_the_file(project, capsys):
    (project / "tools/noise/bars_h200.json").write_text('{"schema_version": 1}')
    assert readme_tables.main([], project) == 1
    assert "bars_h200.json: device: Field required" in capsys.readouterr().err


def test_this_readme_says_what_is_committed():
    assert readme_tables.main(["--check"], ROOT) == 0


def test_a_chapters_traced_demo_has_its_table_from_the_files_beside_it(project, capsys):
    readme = project / "ch07" / "README.md"
    readme.parent.mkdir()
    (project / "ch07" / "triple_overlap_trace.cu").write_text("// A demo.\n")
    readme.write_text("# A chapter\n")
    assert readme_tables.main([], project) == 1
    assert "ch07/README.md: found no table to write; expected the lines <!-- triple_overlap_trace: begin -->" in capsys.readouterr().err

    readme.write_text("# A chapter\n\n<!-- triple_overlap_trace: begin -->\n<!-- triple_overlap_trace: end -->\n")
    written(project)
    assert "When roles were busy, by [triple_overlap_trace.cu](triple_overlap_trace.cu): not measured yet." in readme.read_text()

    (project / "ch07" / "triple_overlap_trace_h200.json").write_text(json.dumps(a_document()))
    assert readme_tables.main(["--check"], project) == 1
    assert "ch07/README.md: differs" in capsys.readouterr().out
    written(project)
    text = readme.read_text()
    assert "(triple_overlap_trace.cu), optimized_transpose.cu at m = 64, n = 32, k = 16 on an NVIDIA H200, driver 580.1, 2026-01-02" in text
    assert "\n| load, multiply | 29.0 % [16.3, 41.7] | 10.0 % [10.0, 10.0] |\n" in text
    assert "the clock of the stamps moves on by 32 ns" in text
    assert readme_tables.main(["--check"], project) == 0

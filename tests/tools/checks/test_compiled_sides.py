"""What became of the compiled sides is kept a device, without where it ran, and the README tells it a table a device."""

import pytest

from common.python.report.run_folder import RunFolder
from common.python.results import StopReason
from common.python.settings import Settings
from common.python.storage import read_document
from tests.support.factories import a_failure, a_row, a_run, a_timing, recorded_units
from tests.tools.checks.test_readme_tables import MACHINE
from tools.checks.compiled_sides import CompiledResults, main, text


def again(**changes):
    """The control, eager against eager: its process pairs differ by little."""
    timing = a_timing({"baseline": 80e3, "optimized": 80e3}, clock="launch", stop_reason=StopReason.UNIT_CAP, **changes)
    return a_row("ch14:mlp_again", timings={"default": timing}, seconds=12.0)


@pytest.fixture
def project(tmp_path):
    (tmp_path / "tests/compiled").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def a_kept_run(project):
    """Keeps a run of `rows` under `settings`, and gives the documents of the folder that it went to."""

    def keep(*rows, machine=MACHINE, noise=None, note="", **settings):
        place = project / "somewhere" / f"run_{len(list(project.glob('somewhere/*')))}"
        folder = RunFolder.create(Settings(artifacts_dir=place), "20260102_030405")
        for row in rows:
            folder.write_pair(row)
        run = a_run(Settings(**settings), environment=machine.model_dump(mode="json"), noise_percent=noise or {})
        folder.write_run(run)
        return main([str(place), "--note", note], project), place

    return keep


def kept(project, key):
    return read_document(project / f"tests/compiled/results_{key}.json", CompiledResults)


def test_a_row_on_a_gpu_is_told_with_its_interval_the_gates_word_and_its_seconds(project, a_kept_run):
    quick = a_timing({"baseline": 80e3, "optimized": 40e3}, clock="launch", units=recorded_units(2.0))
    compiled = {"seconds": 63.0, "first_compilation_s": 40.2, "beyond_compilation_s": 22.8}
    code, _ = a_kept_run(a_row("ch14:mlp", timings={"default": quick}, **compiled), again(units=recorded_units(1.0)), gate=1.0)
    assert code == 0
    told = text(project / "tests/compiled")
    assert "NVIDIA Test, driver 1, torch 2, 2026-01-02, commit 0123456789: 2 of 2 rows passed" in told
    assert "; eager against eager SAME, with a band of 1 %:" in told
    assert "| `mlp` | PASSED | 2.00x [1.97, 2.03] | IMPROVED | 40 | 23 |" in told
    assert "| `mlp_again` | PASSED | 1.00x [0.97, 1.03] | SAME |  |  |" in told
    assert told.endswith("On a CPU: not measured yet.")


def test_noise_of_the_class_widens_the_band(project, a_kept_run):
    slower = again(units=recorded_units(0.98))
    a_kept_run(slower)
    assert kept(project, "test").rows["ch14:mlp_again"].verdict == "REGRESSED"
    a_kept_run(slower, noise={"launch clock": 5.0})
    assert kept(project, "test").rows["ch14:mlp_again"].verdict == "SAME"


def test_a_cpu_has_a_table_of_its_own_without_verdicts_and_no_folder_of_its_machine(project, a_kept_run):
    rows = [again(device="cpu", units=recorded_units(1.0)), a_row("ch14:gated", timings={}), a_failure("SKIPPED", target="ch14:scaled")]
    failed = a_failure(target="ch14:flex", reason=f"{project}/somewhere/x.py: y[0] is 1; expected 2")
    code, _ = a_kept_run(*rows, failed, machine=MACHINE.model_copy(update={"gpus": ()}), note="others ran too")
    assert code == 0
    assert kept(project, "cpu").rows["ch14:flex"].reason == "x.py: y[0] is 1; expected 2"
    told = text(project / "tests/compiled")
    assert (
        "A CPU, 2 cores, torch 2, 2026-01-02, commit 0123456789 (others ran too): 2 of 4 rows passed, 1 skipped for what it needs:" in told
    )
    assert "| `gated` | PASSED | not timed |  |  |  |" in told
    assert "| `flex` | WRONG_RESULT |  |  |  |  |" in told
    assert told.endswith("On a GPU: not measured yet.")


def test_a_run_of_something_else_is_not_kept(project, a_kept_run, capsys):
    code, place = a_kept_run(a_row("ch14:mlp"))
    assert code == 1
    assert f"{place}: found no row ch14:mlp_again; expected a run with --root tests/compiled" in capsys.readouterr().err
    assert main([str(project / "nowhere")], project) == 1
    assert not list((project / "tests/compiled").iterdir())


def test_without_a_run_nothing_is_claimed(project):
    assert text(project / "tests/compiled") == "On a CPU: not measured yet.\n\nOn a GPU: not measured yet."

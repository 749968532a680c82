"""A run folder is whole at every moment, and what cannot be read or written is told in one sentence that names the file."""

import errno
import json
import os
from pathlib import Path

import jsonschema
import pytest

from common.python.errors import BenchmarkError, ExitCode, Status
from common.python.machine.description import describe_machine
from common.python.project import PROJECT_ROOT
from common.python.report import run_folder
from common.python.report.run_folder import RunFolder, folder_of, load, write_reports
from common.python.results import DOCUMENTS
from common.python.settings import Settings
from common.python.storage import write_whole
from tests.common.python.pairs.test_revisions import git
from tests.support.factories import a_failure, a_row, a_run, a_timing


@pytest.fixture
def folder(tmp_path):
    return RunFolder.create(Settings(), "20260102_030405", tmp_path)


def a_finished_run(folder):
    run = a_run()
    folder.write_run(run)
    for row in (a_row(), a_failure(), a_failure(Status.SKIPPED, target="labs/end_to_end:moe", sides={})):
        folder.write_pair(row)
    folder.finish(run.model_copy(update={"exit_code": 4, "ended": "2026-01-02T03:05:00"}))
    return folder.path


def refuse(monkeypatch, number):
    def replace(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "replace", replace)


# --- writing


def test_a_file_that_cannot_be_renamed_leaves_the_old_one_whole_and_nothing_beside_it(tmp_path, monkeypatch):
    path = tmp_path / "metrics.json"
    write_whole(path, "old")
    refuse(monkeypatch, errno.ENOSPC)

    with pytest.raises(BenchmarkError, match=r"metrics\.json: No space left on device; expected to write 3 characters"):
        write_whole(path, "new")

    assert {each.name: each.read_text() for each in tmp_path.iterdir()} == {"metrics.json": "old"}


def test_a_kill_before_the_rename_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "metrics.json"
    write_whole(path, "old")

    def kill(_):
        assert path.read_text() == "old"
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", kill)
    with pytest.raises(KeyboardInterrupt):
        write_whole(path, "new")

    assert path.read_text() == "old"


def test_a_path_below_a_file_is_refused_in_words(tmp_path):
    (tmp_path / "file").write_text("")

    with pytest.raises(BenchmarkError, match=r"file/run\.json: (Not a directory|File exists); expected"):
        write_whole(tmp_path / "file" / "run.json", "{}")


def test_written_files_are_readable_by_others(tmp_path):
    before = os.umask(0o022)
    try:
        write_whole(tmp_path / "run.json", "{}")
    finally:
        os.umask(before)

    assert (tmp_path / "run.json").stat().st_mode & 0o777 == 0o644


def test_the_folder_holds_what_a_run_promises(folder):
    path = a_finished_run(folder)

    assert {str(each.relative_to(path)) for each in path.rglob("*") if each.is_file()} == {
        "run.json",
        "metrics.json",
        "report.md",
        "report.html",
        "comment.md",
        "results.csv",
        "junit.xml",
        "ch07_transpose/metrics.json",
        "ch07_transpose/baseline/metrics.json",
        "ch07_transpose/optimized/metrics.json",
        "ch07_broken/metrics.json",
        "ch07_broken/baseline/metrics.json",
        "ch07_broken/optimized/metrics.json",
        "labs_end_to_end_moe/metrics.json",
    }


def test_reports_can_be_written_again_from_what_was_kept(folder):
    path = a_finished_run(folder)
    reports = [path / name for name in ("report.md", "report.html", "comment.md", "results.csv")]
    before = [report.read_text() for report in reports]
    for report in reports:
        report.unlink()

    for named in (path, path / "run.json"):
        assert write_reports(folder_of(named), *load(named)) == tuple(reports)
        assert [report.read_text() for report in reports] == before


FINISHED = ["run.json", "junit.xml", "metrics.json", "comment.md", "results.csv", "report.md", "report.html"]


@pytest.mark.parametrize("lacking", FINISHED)
def test_of_a_full_disk_what_has_room_is_written_with_an_exit_code_that_says_so(folder, monkeypatch, lacking):
    a_finished_run(folder)
    written, without_room = [], "metrics.json"

    def write(path, text):
        if path.name == without_room:
            written.append("no room")
            raise BenchmarkError(f"{path}: no room") from OSError(errno.ENOSPC, "No space left on device")
        written.append(path.name)
        write_whole(path, text)

    monkeypatch.setattr(run_folder, "write_whole", write)
    with pytest.raises(BenchmarkError, match="no room"):
        folder.write_pair(a_row(target="ch07:later", sides={}, timings={}))
    without_room = lacking
    written.clear()
    run, lost = folder.finish(a_run(exit_code=2))
    assert (run.exit_code, lost) == (ExitCode.FULL_DISK, (lacking,))
    assert set(written) & set(FINISHED) == set(FINISHED) - {lacking}
    if lacking != "run.json":
        assert written[written.index("no room") + 1] == "run.json"
        assert load(folder.path)[0].exit_code == ExitCode.FULL_DISK
    if lacking != "junit.xml":
        assert 'value="8"' in (folder.path / "junit.xml").read_text()


def test_room_for_the_end_of_a_run_is_kept_while_it_runs(folder):
    folder.write_run(a_run(exit_code=None))
    assert (folder.path / ".room").stat().st_blocks * 512 >= 1 << 16
    folder.finish(a_run(exit_code=0))
    assert not (folder.path / ".room").exists()


def test_rows_that_are_kept_already_take_no_room_again(folder, monkeypatch):
    a_finished_run(folder)
    written = []
    monkeypatch.setattr(run_folder, "write_whole", lambda path, text: written.append(path.name))
    assert folder.finish(a_run(exit_code=0)) == (a_run(exit_code=0), ())
    assert written == [name for name in FINISHED[1:] if name != "metrics.json"] + ["run.json"]


def test_every_written_document_keeps_its_published_schema(folder):
    path = a_finished_run(folder)
    written = {
        "run": ["run.json"],
        "metrics": ["metrics.json"],
        "pair_metrics": ["ch07_transpose/metrics.json", "labs_end_to_end_moe/metrics.json"],
        "side_metrics": ["ch07_transpose/optimized/metrics.json", "ch07_broken/baseline/metrics.json"],
    }

    assert written.keys() == DOCUMENTS.keys()
    for name, files in written.items():
        schema = json.loads((PROJECT_ROOT / "common" / "schemas" / f"{name}.schema.json").read_text())
        for file in files:
            document = json.loads((path / file).read_text())
            jsonschema.validate(document, schema, jsonschema.Draft202012Validator)
            with pytest.raises(jsonschema.ValidationError):
                jsonschema.validate(document | {"schema_version": 2}, schema, jsonschema.Draft202012Validator)


def test_a_killed_run_keeps_the_rows_that_were_done(folder, monkeypatch):
    folder.write_run(a_run())
    folder.write_pair(a_row())
    refuse(monkeypatch, errno.EIO)
    with pytest.raises(BenchmarkError, match="Input/output error"):
        folder.write_pair(a_failure())

    run, rows = load(folder.path)

    assert run.exit_code is None
    assert rows == (a_row(),)


def test_a_run_killed_before_its_first_row_can_be_loaded(folder):
    folder.write_run(a_run())

    assert load(folder.path) == (a_run(), ())


def test_samples_of_a_side_are_those_of_the_row_in_order(folder):
    folder.write_pair(a_row(timings={"small": a_timing({"baseline": 20.0, "optimized": 10.0})}))

    saved = json.loads((folder.path / "ch07_transpose/optimized/metrics.json").read_text())

    assert saved["samples_ns"] == {"small": [10.0, 11.0, 10.0] * 6}
    assert saved["time_ns"]["small"]["estimate"] == 10.0


def test_samples_stand_on_one_line_and_text_that_looks_like_them_is_kept(folder):
    note = "found [\n 1,  2] in [ 3,   4 ]"
    folder.write_pair(a_row(notes=(note,)))

    text = (folder.path / "metrics.json").read_text()

    assert json.loads(text)["rows"][0]["notes"] == [note]
    assert '"samples_ns": [84700.0, 84701.0]' in text


def test_workers_log_beside_their_metrics(folder):
    path = folder.log_path("labs/end_to_end:moe", "baseline")

    assert path.is_dir()
    assert path == folder.path / "labs_end_to_end_moe" / "baseline"


ALIKE = ("ch07_a:b", "ch07:a_b", "ch07/a:b", "ch07:a_b.2")


def test_targets_that_spell_alike_have_folders_of_their_own(folder):
    names = folder.name_folders(ALIKE)
    for target in ALIKE:
        folder.write_pair(a_row(target))

    assert names["ch07_a:b"] == "ch07_a_b"
    found = {json.loads(path.read_text())["target"]: path.parent.name for path in folder.path.glob("*/metrics.json")}
    assert found == names


def test_a_target_has_the_folder_it_had_when_its_run_is_resumed_whichever_comes_first(folder):
    names = folder.name_folders(ALIKE)
    folder.write_run(a_run(folders=names))  # killed before the first row

    again = resume(folder.path)
    assert again.name_folders(reversed(ALIKE)) == names
    assert again.log_path("ch07:a_b", "baseline") == folder.path / names["ch07:a_b"] / "baseline"
    assert again.name_folders(["ch07:a_b_new"])["ch07:a_b_new"] == "ch07_a_b_new"


# --- making the folder


def test_two_runs_of_one_second_get_two_folders(tmp_path):
    ids = [RunFolder.create(Settings(), "20260102_030405", tmp_path / "artifacts").run_id for _ in range(3)]

    assert ids == ["20260102_030405", "20260102_030405_2", "20260102_030405_3"]
    assert all((tmp_path / "artifacts" / each).is_dir() for each in ids)


def test_a_folder_of_runs_that_is_made_leaves_a_clean_checkout_clean(tmp_path):
    git(tmp_path, "init", "-q")
    (tmp_path / "workload_add.py").write_text("")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "first")
    for _ in range(2):
        folder = RunFolder.create(Settings(root=tmp_path), "20260102_030405")
        a_finished_run(folder)

    assert folder.path == tmp_path / "artifacts/20260102_030405_2"
    assert describe_machine(tmp_path).root.dirty is False


def test_a_folder_of_runs_that_was_there_stays_as_it_was(tmp_path):
    (tmp_path / "artifacts").mkdir()
    RunFolder.create(Settings(root=tmp_path), "20260102_030405")

    assert [path.name for path in (tmp_path / "artifacts").iterdir()] == ["20260102_030405"]


@pytest.mark.parametrize("exists", [True, False])
def test_artifacts_dir_may_be_absent_or_empty(tmp_path, exists):
    path = tmp_path / "a" / "b"
    if exists:
        path.mkdir(parents=True)

    folder = RunFolder.create(Settings(artifacts_dir=path), "20260102_030405", tmp_path / "unused")

    assert folder.path == path
    assert folder.run_id == "20260102_030405"
    assert not (tmp_path / "unused").exists()


def test_artifacts_dir_with_something_in_it_is_refused_and_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("all of it")

    with pytest.raises(BenchmarkError, match=f"{tmp_path} is not empty; expected an absent or empty folder, or --resume"):
        RunFolder.create(Settings(artifacts_dir=tmp_path), "x")

    assert [each.name for each in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize(("name", "message"), [("file", "is not a folder"), ("file/below", "Not a directory")])
def test_artifacts_dir_that_cannot_be_a_folder_is_refused(tmp_path, name, message):
    (tmp_path / "file").write_text("")

    with pytest.raises(BenchmarkError, match=message):
        RunFolder.create(Settings(artifacts_dir=tmp_path / name), "x")


def test_artifacts_dir_that_cannot_be_written_is_refused_before_anything_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)

    with pytest.raises(BenchmarkError, match=f"{tmp_path} cannot be read and written"):
        RunFolder.create(Settings(artifacts_dir=tmp_path), "x")


def test_a_folder_of_runs_that_cannot_be_written_is_refused_with_the_flag_that_names_another(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: not mode & os.W_OK)
    with pytest.raises(BenchmarkError, match=r"/artifacts cannot be read and written; expected a folder that can, or --artifacts-dir$"):
        RunFolder.create(Settings(root=tmp_path), "x")


# --- reading


@pytest.mark.parametrize("name", ["", "run.json", "metrics.json"])
def test_a_run_is_loaded_by_its_folder_or_either_document(folder, name):
    run, rows = load(a_finished_run(folder) / name)

    assert run.exit_code == 4
    assert [row.target for row in rows] == ["ch07:transpose", "ch07:broken", "labs/end_to_end:moe"]
    assert rows[0] == a_row()


def changed(**keys):
    return lambda text: json.dumps(json.loads(text) | keys)


@pytest.mark.parametrize(
    ("file", "damage", "message"),
    [
        ("run.json", lambda text: "", r"line 1, column 1: Expecting value; expected a whole JSON document"),
        ("metrics.json", lambda text: text[: len(text) // 2], r"line \d+, column \d+: .*; expected a whole JSON document"),
        ("run.json", lambda text: "[]", "no schema_version; expected a document of schema version 1"),
        ("run.json", lambda text: '{"schema_version": "1"}', "no schema_version; expected"),
        ("metrics.json", changed(schema_version=7), "schema version 7; expected at most 1"),
        ("metrics.json", changed(rows=[{"target": "ch07:x"}]), r"rows\.0\.workload_file: Field required; expected"),
        ("run.json", changed(seed="soon"), "seed: Input should be a valid integer"),
        ("run.json", changed(run_id="other"), "run_id 20260102_030405; expected other"),
    ],
)
def test_a_damaged_document_is_told_by_file_found_and_expected(folder, file, damage, message):
    path = a_finished_run(folder)
    (path / file).write_text(damage((path / file).read_text()))

    with pytest.raises(BenchmarkError, match=message) as error:
        load(path)

    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_document_that_is_not_text_is_told(folder):
    path = a_finished_run(folder)
    (path / "run.json").write_bytes(b'{"run_id": "\xff"}')

    with pytest.raises(BenchmarkError, match=r"run\.json: byte 12 is not UTF-8"):
        load(path)


def test_a_time_on_a_row_that_failed_is_not_believed_from_a_file_either(folder):
    path = a_finished_run(folder)
    content = json.loads((path / "metrics.json").read_text())
    content["rows"][1]["timings"] = content["rows"][0]["timings"]
    (path / "metrics.json").write_text(json.dumps(content))

    with pytest.raises(BenchmarkError, match="status WRONG_RESULT carries a timing"):
        load(path)


@pytest.mark.parametrize("name", ["run.json", "metrics.json"])
def test_a_missing_document_is_told(folder, name):
    path = a_finished_run(folder)
    (path / name).unlink()

    with pytest.raises(BenchmarkError, match=f"{name} is missing; expected the {name} of a run"):
        load(path)


def test_a_missing_run_is_told(tmp_path):
    with pytest.raises(BenchmarkError, match="nowhere: no such folder; expected that of a run"):
        load(tmp_path / "nowhere")


# --- resuming


def resume(path: Path, **changes: object) -> RunFolder:
    return RunFolder.create(Settings(artifacts_dir=path, resume=True).model_copy(update=changes), "20270101_000000")


def test_resuming_keeps_what_was_done_under_the_old_name(folder):
    path = a_finished_run(folder)

    again = resume(path)

    assert again.run_id == "20260102_030405"
    assert again.saved is not None
    assert again.saved.seed == a_run().seed
    assert again.completed(Settings(targets=("ch07",), suite_timeout=60.0)).keys() == {
        "ch07:transpose",
        "ch07:broken",
        "labs/end_to_end:moe",
    }


def test_resuming_never_loses_a_row_not_even_before_the_first_new_one(folder):
    again = resume(a_finished_run(folder))
    again.write_run(a_run())
    assert len(load(again.path)[1]) == 3

    again.write_pair(a_row("ch07:copy"))
    again.write_pair(a_row("ch07:broken"))

    rows = load(again.path)[1]
    assert [(row.target, row.status) for row in rows] == [
        ("ch07:transpose", Status.PASSED),
        ("ch07:broken", Status.PASSED),
        ("labs/end_to_end:moe", Status.SKIPPED),
        ("ch07:copy", Status.PASSED),
    ]


def test_a_part_of_a_row_is_there_until_the_whole_is(folder):
    folder.write_run(a_run())
    folder.write_part(a_row("ch07:copy"))
    folder.write_pair(a_row("ch07:copy", status=Status.TIMEOUT, reason="it took too long", timings={}))
    assert resume(folder.path).begun() == {"ch07:copy": a_row("ch07:copy")}
    folder.write_pair(a_row("ch07:copy", status=Status.WRONG_RESULT, reason="y[3] is 1; expected 2", timings={}))
    assert folder.begun() == {}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"iterations": 20}, "--iterations 20; expected no --iterations, which"),
        ({"kwargs": {"n": "8"}}, "--kwargs n=8; expected no --kwargs"),
        ({"command": "verify"}, "command verify; expected command run"),
        ({"sanitize": ("memcheck",)}, "--sanitize memcheck; expected no --sanitize"),
        ({"gate": 1.0}, r"--gate 1\.0; expected --gate 0\.5"),
    ],
)
def test_rows_made_with_other_settings_are_not_mixed_in(folder, changes, message):
    again = resume(a_finished_run(folder))

    with pytest.raises(BenchmarkError, match=f"--resume with {message}"):
        again.completed(Settings().model_copy(update=changes))


def test_every_setting_is_either_compared_or_free_on_resume(folder):
    assert Settings.model_fields.keys() > run_folder._FREE_ON_RESUME


def test_resuming_where_no_folder_is_is_refused(tmp_path):
    with pytest.raises(BenchmarkError, match=r"^--resume: .*/fresh does not exist; expected the folder of the run to resume$"):
        resume(tmp_path / "fresh")

    assert not (tmp_path / "fresh").exists()


def test_resuming_in_an_empty_folder_starts_a_run(tmp_path):
    (tmp_path / "fresh").mkdir()
    folder = resume(tmp_path / "fresh")

    assert folder.saved is None
    assert folder.completed(Settings()) == {}


def test_resuming_what_is_no_run_is_refused(tmp_path):
    (tmp_path / "thesis.txt").write_text("all of it")

    with pytest.raises(BenchmarkError, match=r"run\.json is missing"):
        resume(tmp_path)

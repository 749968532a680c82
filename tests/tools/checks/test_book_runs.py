"""What came of the book's commands is run once, kept by machine, and shown."""

import os
import signal
import threading
import time

import pytest

from common.python.errors import BenchmarkError
from common.python.project import PROJECT_ROOT
from common.python.run.interruption import Interrupted
from tools.checks import book_runs
from tools.checks.book_runs import COMMANDS, OVER, RECORD, commands_in, main, record_of, section, typed


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Two commands that name a lab, of which one is ended, and one that names none."""
    (tmp_path / RECORD).parent.mkdir(parents=True)
    (tmp_path / COMMANDS[0]).write_text("# those of the book\nfalse labs/a\techo first; echo labs/a; exit 3\nfalse ch07\n")
    (tmp_path / COMMANDS[1]).write_text("sleep 60 # labs/b\n")
    monkeypatch.setattr(book_runs, "machine_of", lambda _root: ("CPU, 2 cores", "0123456789"))
    return tmp_path


def test_a_command_is_run_once_and_kept(root, capsys):
    assert main(["--naming", "labs/", "--limit", "1"], root) == 0
    done = record_of(root)
    assert [(each.command, each.code, each.said) for each in done] == [
        ("echo first; echo labs/a; exit 3", "3", "labs/a"),
        ("sleep 60 # labs/b", OVER, ""),
    ]
    assert {(each.machine, each.commit) for each in done} == {("CPU, 2 cores", "0123456789")}
    assert "`sleep 60 # labs/b` | CPU, 2 cores" in section(root)
    capsys.readouterr()
    assert main(["--naming", "labs/", "--limit", "1"], root) == 0
    assert capsys.readouterr().out == ""
    assert main(["--naming", "labs/a", "--again"], root) == 0
    assert [each.command for each in record_of(root)] == ["sleep 60 # labs/b", "echo first; echo labs/a; exit 3"]


def test_a_command_does_not_outlive_a_signal_and_is_not_kept(root):
    def stop():
        wait_for(root / "began")
        os.kill(os.getpid(), signal.SIGTERM)

    (root / COMMANDS[0]).write_text("trap 'touch ended; exit' TERM; touch began; sleep 60 & wait # labs/a\n")
    stopping = threading.Thread(target=stop)
    stopping.start()
    with pytest.raises(Interrupted):
        main(["--naming", "labs/"], root)
    stopping.join()
    assert wait_for(root / "ended")
    assert record_of(root) == []


def wait_for(path, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not path.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    return path.exists()


def test_the_rows_of_a_run_are_counted(root):
    document = '{"rows": [{"status": "PASSED"}, {"status": "SKIPPED"}, {"status": "PASSED"}]}'
    (root / "benchmark_cli").write_text(f"#!/bin/bash\nmkdir -p $3; echo '{document}' > $3/metrics.json\n")
    (root / "benchmark_cli").chmod(0o755)
    assert book_runs.run("./benchmark_cli run", root, 60.0)[::2] == ("0", "2 PASSED, 1 SKIPPED")


def test_the_folders_of_runs_are_kept_if_that_is_asked_for(root, tmp_path, monkeypatch):
    (root / "benchmark_cli").write_text("#!/bin/bash\nmkdir -p $5; echo $3 > $5/said\n")
    (root / "benchmark_cli").chmod(0o755)
    (root / COMMANDS[0]).write_text("./benchmark_cli run --targets a\n./benchmark_cli run --targets b\n")
    monkeypatch.chdir(tmp_path)
    main(["--naming", "benchmark_cli", "--keep", "kept"], root)
    assert [(tmp_path / "kept" / place / "said").read_text() for place in "01"] == ["a\n", "b\n"]
    before = record_of(root)
    with pytest.raises(BenchmarkError, match="--keep kept: found a folder"):
        main(["--naming", "benchmark_cli", "--again", "--keep", "kept"], root)
    assert record_of(root) == before


def test_a_run_gets_a_folder_and_waits_and_nothing_else_changes(tmp_path):
    assert typed("benchmark_cli run --targets ch07", tmp_path) == f"benchmark_cli run --targets ch07 --artifacts-dir {tmp_path} --wait 3600"
    assert typed("benchmark_cli run --artifacts-dir a", tmp_path) == "benchmark_cli run --artifacts-dir a --wait 3600"
    for command in ("benchmark_cli list-targets", "python labs/x/run.py"):
        assert typed(command, tmp_path) == command


def test_a_line_that_is_no_record_is_refused(root):
    (root / RECORD).write_text("CPU\t2026-11-29\n")
    with pytest.raises(BenchmarkError, match=r"book_runs.tsv:1: found 2 fields; expected 7"):
        record_of(root)


def test_each_line_of_the_record_is_of_a_command_of_the_book():
    known = set(commands_in(PROJECT_ROOT, ""))
    assert {each.command for each in record_of(PROJECT_ROOT)} <= known


def test_the_table_is_in_the_order_of_the_book_and_there_is_none_without_a_record(root):
    assert section(root) == ""
    for name in ("labs/b", "labs/a"):
        main(["--naming", name, "--limit", "1"], root)
    text = section(root)
    assert text.index("labs/a") < text.index("labs/b")
    assert "2 of 3 so far" in text


def test_a_command_finds_the_tree_first_and_what_the_caller_has(root, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    assert book_runs.run("echo $PYTHONPATH", root, 60.0)[2] == f"{root}:/elsewhere"
    monkeypatch.delenv("PYTHONPATH")
    assert book_runs.run("echo $PYTHONPATH", root, 60.0)[2] == str(root)

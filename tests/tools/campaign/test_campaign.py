"""A campaign gives each GPU its commands, ends in time, says what failed and what is left, and brings home what was accepted."""

import re
import signal
import subprocess
import sys
import time

import pytest

from common.python.errors import BenchmarkError
from common.python.gate.expectations import Expectations, read_expectations
from common.python.storage import document_text, write_whole
from tests.support.factories import an_expectation
from tools.campaign import campaign
from tools.campaign.campaign import LEFT, main
from tools.campaign.plan import Task, plan_text, read_plan

# Stands in for the command line: says where it runs, and does what its words say.
COMMAND = """
import os, pathlib, signal, sys, time
word, *rest = sys.argv[1:]
begun = time.monotonic()
if word == "deaf":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
if word in ("sleep", "deaf"):
    time.sleep(float(rest[0]))
if word == "accept":
    pathlib.Path("ch07/expectations_test.json").write_text(pathlib.Path(rest[0]).read_text())
print(os.environ["CUDA_VISIBLE_DEVICES"], begun, time.monotonic(), os.getcwd(), word, *rest)
sys.exit(7 if word == "fail" else 0)
"""


def git(folder, *words):
    who = ("-c", "user.name=a", "-c", "user.email=a@b.example")
    subprocess.run(["git", "-C", str(folder), *who, *words], check=True, capture_output=True)


@pytest.fixture
def source(tmp_path):
    """A project of its own, committed, with one row accepted."""
    folder = tmp_path / "source"
    for name, text in {"tools/cli/benchmark_cli.py": COMMAND, "ch07/expectations_test.json": expecting({"copy": an_expectation()})}.items():
        write_whole(folder / name, text)
    git(tmp_path, "init", "-q", "source")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "x")
    return folder


def expecting(pairs):
    return document_text(Expectations(gpu="test", pairs={pair: {"": row} for pair, row in pairs.items()}))


def carry_out(tmp_path, source, lines, *more, gpus="0,1", minutes="1"):
    plan = tmp_path / "a.plan"
    plan.write_text("".join(f"{line}\n" for line in lines))
    asked = [str(plan), "--source", str(source), "--out", str(tmp_path / "out"), "--gpus", gpus, "--minutes", minutes, *more]
    return main(asked, tmp_path / "home")


def logs(tmp_path):
    """By what ran: the GPU, when it began and ended, and the folder it ran in, for each of its runs."""
    found = {}
    for log in sorted((tmp_path / "out").glob("*.log")):
        if words := log.read_text().split():
            found.setdefault(" ".join(words[4:]), []).append((words[0], float(words[1]), float(words[2]), words[3]))
    return found


@pytest.mark.parametrize(
    ("line", "task"),
    [
        ("30 run -t ch07:copy", Task(30, "", "run -t ch07:copy")),
        ("  2.5   each  peak --device cuda ", Task(2.5, "each", "peak --device cuda")),
        ("9 alone $ nvidia-smi | head", Task(9, "alone", "$ nvidia-smi | head")),
        ("9 all run -t ch04:nccl", Task(9, "all", "run -t ch04:nccl")),
    ],
)
def test_a_line_of_a_plan(tmp_path, line, task):
    path = tmp_path / "a.plan"
    path.write_text(f"# remark\n\n{line}\n")
    assert read_plan(path) == [task]

    path.write_text(plan_text([task]))
    assert read_plan(path) == [task]


@pytest.mark.parametrize("line", ["run -t ch07", "0 run", "nan run", "-3 run", "inf run", "30", "30 alone", "30 all", "30 $ ", '30 run "x'])
def test_a_line_that_is_none_is_named(tmp_path, line):
    path = tmp_path / "a.plan"
    path.write_text(f"1 run\n{line}\n")
    with pytest.raises(BenchmarkError, match=r"a\.plan:2: found .*; expected seconds, perhaps alone, all or each, and a command"):
        read_plan(path)


def test_a_plan_that_is_not_there_or_empty_is_named(tmp_path, capsys):
    assert main([str(tmp_path / "a.plan"), "--gpus", "0", "--out", str(tmp_path / "out")], tmp_path) == 1
    assert capsys.readouterr().err == f"error: {tmp_path / 'a.plan'}: found No such file or directory; expected a plan, a command a line\n"
    assert not (tmp_path / "out").exists()

    (tmp_path / "a.plan").write_text("# nothing\n")
    with pytest.raises(BenchmarkError, match="found no command; expected at least one"):
        read_plan(tmp_path / "a.plan")


def test_a_run_leaves_its_files_where_the_campaign_looks(tmp_path):
    here = tmp_path / "001"
    assert Task(1, "", "run -t ch07").command("python", here)[2:] == ["run", "-t", "ch07", "--artifacts-dir", str(here)]
    assert Task(1, "", "run --artifacts-dir mine").command("python", here)[2:] == ["run", "--artifacts-dir", "mine"]
    assert Task(1, "", "peak").command("python", here)[2:] == ["peak"]


def test_each_gpu_gets_its_share_and_who_wants_to_be_alone_is(tmp_path, source, capsys):
    lines = [
        "1 sleep 0.3",
        "1 sleep 0.31",
        "1 sleep 0.32",
        "1 alone sleep 0.33",
        "1 alone sleep 0.34",
        "1 all sleep 0.36",
        "1 each sleep 0.35",
    ]
    assert carry_out(tmp_path, source, lines) == 0
    ran = logs(tmp_path)

    assert sorted(gpu for gpu, *_ in ran["sleep 0.35"]) == ["0", "1"]
    assert {folder for runs in ran.values() for *_, folder in runs} == {str(tmp_path / "out" / tree) for tree in ("tree0", "tree1")}
    assert {gpu for words in ("0.3", "0.31", "0.32") for gpu, *_ in ran[f"sleep {words}"]} == {"0", "1"}
    assert [gpus for gpus, *_ in ran["sleep 0.36"]] == ["0,1"]
    everything = [run for runs in ran.values() for run in runs]
    for _, begun, ended, _ in (*ran["sleep 0.33"], *ran["sleep 0.34"], *ran["sleep 0.36"]):
        others = [run for run in everything if (run[1], run[2]) != (begun, ended)]
        assert all(other[2] <= begun or other[1] >= ended for other in others)
    assert max(ended for _, _, ended, _ in ran["sleep 0.35"]) <= ran["sleep 0.33"][0][1]
    assert capsys.readouterr().out.splitlines()[-1] == f"0 rows accepted, 0 commands failed, 0 left in {tmp_path / 'out' / LEFT}"


def test_a_lane_of_several_gpus_shows_its_commands_all_of_them(tmp_path, source, capsys):
    lines = ["1 sleep 0.3", "1 sleep 0.31", "1 alone sleep 0.33", "1 all sleep 0.36", "1 each sleep 0.35"]
    assert carry_out(tmp_path, source, lines, gpus="0+1, 2 + 3") == 0
    ran = logs(tmp_path)
    both = ["0,1", "2,3"]

    assert sorted(run[0] for run in ran["sleep 0.35"]) == both
    assert sorted(run[0] for words in ("0.3", "0.31") for run in ran[f"sleep {words}"]) == both
    (first,), (second,) = ran["sleep 0.3"], ran["sleep 0.31"]
    assert max(first[1], second[1]) < min(first[2], second[2])  # side by side
    assert [run[0] for run in ran["sleep 0.33"]] == both[:1]
    assert [run[0] for run in ran["sleep 0.36"]] == ["0,1,2,3"]
    assert {run[3] for runs in ran.values() for run in runs} == {str(tmp_path / "out" / tree) for tree in ("tree0", "tree1")}
    assert re.search(r"GPU 2\+3 .* exit 0  sleep 0.35\n", capsys.readouterr().out)


@pytest.mark.parametrize("gpus", ["0,0", "0+1,1+2", "0+0", "0+,1", "+", "0,,1", "0+1,"])
def test_a_gpu_twice_or_without_a_name_is_refused(tmp_path, source, capsys, gpus):
    assert carry_out(tmp_path, source, ["1 sleep 0"], gpus=gpus) == 1
    expected = f"error: --gpus {gpus}: found a GPU twice or one without a name; expected each once, as in 0,1 or 0+1,2+3\n"
    assert capsys.readouterr().err == expected
    assert not (tmp_path / "out").exists()


def test_what_failed_is_told_with_the_end_of_its_log(tmp_path, source, capsys):
    assert carry_out(tmp_path, source, ["1 fail me", "1 $ echo to a shell; exit 3", "1 sleep 0"]) == 1
    out = capsys.readouterr().out
    assert re.search(r"exit 7  fail me\n    [01] .* fail me\n", out)
    assert "exit 3  $ echo to a shell; exit 3\n    to a shell\n" in out
    assert "0 rows accepted, 2 commands failed, 0 left" in out


def test_what_would_end_too_late_is_not_begun_and_is_left(tmp_path, source, capsys):
    assert carry_out(tmp_path, source, ["1 sleep 0", "500 each sleep 1", "400 alone $ true", "2 sleep 0.1"]) == 1
    assert sorted(logs(tmp_path)) == ["sleep 0", "sleep 0.1"]
    assert (tmp_path / "out" / LEFT).read_text() == "500 each sleep 1\n400 alone $ true\n"
    assert "0 commands failed, 2 left" in capsys.readouterr().out


@pytest.mark.parametrize("word", ["sleep", "deaf"])
def test_what_runs_too_long_is_stopped_and_left(tmp_path, source, capsys, monkeypatch, word):
    monkeypatch.setattr(campaign, "_PATIENCE_S", 0.5)
    started = time.monotonic()
    assert carry_out(tmp_path, source, [f"1 {word} 100"], minutes="0.05") == 1
    assert time.monotonic() - started < 20
    assert (tmp_path / "out" / LEFT).read_text() == f"1 {word} 100\n"
    assert "stopped, too late" in capsys.readouterr().out


def test_what_is_accepted_comes_home_and_nothing_else_changes(tmp_path, source, capsys):
    known, new, other = an_expectation(), an_expectation(clock="launch"), an_expectation(cache="hot")
    home = tmp_path / "home/ch07/expectations_test.json"
    write_whole(home, expecting({"copy": known, "here": other}))
    write_whole(tmp_path / "new.json", expecting({"copy": known, "new": new}))
    assert carry_out(tmp_path, source, [f"1 accept {tmp_path}/new.json"]) == 0

    assert {pair: rows[""] for pair, rows in read_expectations(home).pairs.items()} == {"copy": known, "here": other, "new": new}
    assert "accepted ch07/expectations_test.json: new\n1 rows accepted" in capsys.readouterr().out


def test_each_command_finds_a_clean_clone_and_what_git_ignores(tmp_path, source):
    (source / ".gitignore").write_text("/artifacts/\n")
    git(source, "add", ".gitignore")
    git(source, "commit", "-q", "-m", "y")
    write_whole(tmp_path / "new.json", expecting({"new": an_expectation()}))
    look = "1 $ cat artifacts/kept; git status --porcelain; git rev-parse --abbrev-ref HEAD"
    keep = "1 $ echo a ceiling > artifacts/kept; echo > ch07/expectations_other.json; rm ch07/expectations_other.json"
    assert carry_out(tmp_path, source, [f"1 each accept {tmp_path}/new.json", keep, look], gpus="0") == 0
    assert (tmp_path / "out/003.log").read_text().splitlines()[:1] == ["a ceiling"]
    assert "expectations" not in (tmp_path / "out/003.log").read_text()


def test_what_peak_keeps_of_one_gpu_is_there_where_all_are_seen(tmp_path, source):
    (source / ".gitignore").write_text("/artifacts/\n")
    git(source, "add", ".gitignore")
    git(source, "commit", "-q", "-m", "y")
    lines = ["1 each $ touch artifacts/machines/$CUDA_VISIBLE_DEVICES.json", "1 all $ ls artifacts/machines; git status --porcelain"]
    assert carry_out(tmp_path, source, lines) == 0
    assert (tmp_path / "out/003.log").read_text().split() == ["0.json", "1.json"]


def test_a_file_that_cannot_be_read_keeps_no_other_row_from_home(tmp_path, source, capsys):
    write_whole(tmp_path / "new.json", expecting({"new": an_expectation()}))
    lines = [f"1 each accept {tmp_path}/new.json", "1 $ echo broken > ch07/expectations_test.json"]
    assert carry_out(tmp_path, source, lines) == 1
    assert set(read_expectations(tmp_path / "home/ch07/expectations_test.json").pairs) == {"new"}
    assert re.search(r"error: \S+expectations_test.json: .*; what GPU \d accepted stays in ", capsys.readouterr().out)


@pytest.mark.parametrize("names", [("main",), ("HEAD",), ("HEAD", "main")])
def test_a_bundle_is_a_source(tmp_path, source, names):
    git(source, "branch", "-M", "main")
    git(source, "bundle", "create", "-q", str(tmp_path / "a.bundle"), *names)
    assert carry_out(tmp_path, tmp_path / "a.bundle", ["1 sleep 0"]) == 0
    assert list(logs(tmp_path)) == ["sleep 0"]


def test_nothing_begins_that_rests_on_what_failed_everywhere(tmp_path, source, capsys):
    assert carry_out(tmp_path, source, ["1 sleep 0", "1 each fail"]) == 1
    assert set(logs(tmp_path)) == {"fail"}
    assert (tmp_path / "out" / LEFT).read_text() == "1 sleep 0\n1 each fail\n"


def test_what_is_for_every_gpu_is_left_with_the_rest(tmp_path, source):
    assert carry_out(tmp_path, source, ["1 each sleep 0", "500 sleep 1", "500 sleep 1"]) == 1
    assert (tmp_path / "out" / LEFT).read_text() == "1 each sleep 0\n500 sleep 1\n500 sleep 1\n"


@pytest.mark.slow
def test_of_a_command_that_a_plan_has_twice_the_one_that_is_left_is_left_once(tmp_path, source):
    once = "1 $ test -e ../been && sleep 100; touch ../been"
    assert carry_out(tmp_path, source, ["500 sleep 1", "1 sleep 0", once, once], gpus="0", minutes="0.15") == 1
    assert (tmp_path / "out" / LEFT).read_text() == f"500 sleep 1\n{once}\n"


def test_what_is_no_project_or_not_committed_is_refused(tmp_path, source, capsys):
    def error(*changed, **more):
        assert carry_out(tmp_path, *changed, ["1 sleep 0"], **more) == 1
        assert not list((tmp_path / "out").glob("*.log"))
        return capsys.readouterr().err

    (source / "ch07/expectations_test.json").write_text("{}")
    assert error(source) == f"error: {source}: found 1 files that differ from the last commit; expected a clean tree\n"
    assert "expected a checkout or a bundle of this project" in error(tmp_path / "nothing")
    (tmp_path / "out").mkdir()
    assert error(tmp_path / "nothing") == f"error: --out {tmp_path / 'out'}: found File exists; expected a folder that can be made\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_campaign_that_is_told_to_end_leaves_what_was_not_done(tmp_path, source, number):
    lines = "5 sleep 100\n5 each sleep 101\n"
    (tmp_path / "a.plan").write_text(lines)
    asked = ["--source", str(source), "--out", str(tmp_path / "out"), "--gpus", "0"]
    running = subprocess.Popen([sys.executable, "-m", "tools.campaign.campaign", str(tmp_path / "a.plan"), *asked], stdout=subprocess.PIPE)
    while not (tmp_path / "out/001.log").exists():
        assert running.poll() is None
        time.sleep(0.05)
    running.send_signal(number)
    out, _ = running.communicate(timeout=60)
    assert running.returncode == 130
    assert (tmp_path / "out" / LEFT).read_text() == lines
    assert b"0 rows accepted, 0 commands failed, 2 left" in out

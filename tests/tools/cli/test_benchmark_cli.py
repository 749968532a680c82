"""The command line as its users meet it, judged by its exit code and by what it prints where.

Each command has tests in a process of its own. What does not depend on that is tested in this one, with the fork server of all tests.
"""

import json
import os
import pty
import re
import resource
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import psutil
import pytest

from common.python.report.run_folder import load
from tests.support.commands import BASELINE, ROOT, benchmark, benchmark_here, start, stop, until, write_pair

SCHEMAS = ROOT / "common/schemas"
QUICK = ("--iterations", "2", "--warmup", "0")
SLEEPS = BASELINE.replace("lambda: x + x", "lambda: __import__('time').sleep(60)")
MARKS = "open(__file__ + '.ran', 'w').close()\n"


@pytest.fixture
def cli(tmp_path):
    """Run the command line; its temporary files, and so its lock, are the test's own."""
    return lambda *arguments, **options: benchmark(*arguments, scratch=tmp_path, **options)


@pytest.fixture
def here(tmp_path):
    """Run the command line in this process."""
    return lambda *arguments: benchmark_here(*arguments, scratch=tmp_path)


@pytest.fixture
def root(tmp_path):
    return write_pair(tmp_path / "root")


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if "__pycache__" not in path.parts)


def test_the_version_is_that_of_this_checkout_with_its_commit(cli, here):
    told = cli("--version")
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True, check=True).stdout[:10]
    assert (told.code, told.stderr) == (0, "")
    assert re.fullmatch(rf"benchmark_cli \d+\.\d+\.\d+, commit {commit}( with changes)?\n", told.stdout)
    assert here("--versoin").code == 1


# --- a request that cannot be carried out: one sentence on stderr, nothing on stdout, exit 1


def test_a_request_that_cannot_be_carried_out_is_one_sentence(cli, here, root, tmp_path):
    (tmp_path / "empty").mkdir()
    refused = {
        ("run", "--targets", "demo:doubel"): "target 'demo:doubel': found nothing of that name; expected one like demo:double",
        ("show", "demo:doubel"): "target 'demo:doubel': found nothing of that name; expected one like demo:double",
        ("new", "demo:double"): f"new demo:double: {root}/demo/workload_double.py exists; expected a name that no file has",
        ("list-targets", "--chapter", "demos"): "target 'demos': found nothing of that name; expected one like demo",
        ("run", "--warmup", "-1"): "--warmup -1: -1 is not in the range 0<=x<=1000000000",
        ("frobnicate",): "No such command 'frobnicate'; expected what --help lists",
    }
    for arguments, sentence in refused.items():
        where = () if arguments == ("frobnicate",) else ("--root", root)
        finished = cli(*arguments, *where)
        assert (finished.code, finished.error) == (1, sentence)
    assert here("run", "--root", tmp_path / "empty").error.startswith(f"{tmp_path}/empty: found no pair; expected workload_<name>.py with ")
    assert here("list-targets", "--root", tmp_path / "empty").error.startswith(f"{tmp_path}/empty: found no pair; expected workload_")
    assert here("list-targets", "--root", "").error == '--root "": found no folder; expected one that holds pairs'
    assert here("run", "--root=").error == '--root "": found no folder; expected one that holds pairs'
    assert here("run", "--root", tmp_path / "nowhere").error.startswith(f"--root {tmp_path}/nowhere: found no such folder; expected ")


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("bench -t demo", "No such command 'bench'; expected one like run"),
        ("lst-targets", "No such command 'lst-targets'; expected one like list-targets"),
        ("run --target demo", "No such option: --target; expected one like --targets"),
        ("run --filter demo", "No such option: --filter; expected one like --targets"),
        ("run --zzz", "No such option: --zzz; expected what --help lists"),
        ("list-targets --targets demo", "No such option: --targets; expected one like --chapter"),
        ("--targets demo run", "No such option: --targets; expected it behind run or verify or first-run"),
        ("verify --iterations 3", "No such option: --iterations; expected it behind run"),
        ("run demo", "Got unexpected extra argument(s) (demo); expected --targets demo"),
        ("show demo:double demo", "Got unexpected extra argument(s) (demo); expected what --help lists"),
        ("run --json=true", "Option '--json' does not take a value; expected what --help lists"),
        ("show --root", "Option '--root' requires an argument; expected what --help lists"),
        ("run --warmup 1.5", "--warmup 1.5: '1.5' is not an integer"),
        ("prune --days x", "--days x: 'x' is not a number"),
        ("prune --days nan", "--days nan: found no finite number; expected one"),
        ("run --resume", "--resume: found no --artifacts-dir; expected the folder of the run to resume"),
        ("run --artifacts-dir ''", '--artifacts-dir "": found no folder; expected the name of one'),
        ("history --html=", '--html "": found no folder; expected the name of one'),
        ("list-targets --chapter demo:double", "--chapter demo:double: found a pair's name; expected a folder, as demo"),
    ],
)
def test_a_slip_is_told_what_was_meant(here, line, sentence):
    finished = here(*shlex.split(line))
    assert (finished.code, finished.stdout, finished.error) == (1, "", sentence)


def test_a_folder_whose_files_do_not_make_pairs_is_told_with_the_file(here, root):
    def told():
        finished = here("run", "--root", root, "--targets", "demo")
        assert finished.code == 1
        return finished.error

    demo = root / "demo"
    baseline = (demo / "baseline_double.py").read_text()
    (demo / "baseline_double.py").unlink()
    assert told().startswith("demo/workload_double.py: found no baseline; expected demo/baseline_double.py or .cu")
    (demo / "baseline_double.py").write_text(baseline)
    (demo / "baseline_double.cu").write_text("// Baseline.\n")
    assert "found baseline_double.cu beside it; expected one of the two" in told()
    (demo / "baseline_double.cu").unlink()
    (demo / "optimized_orphan.py").write_text(baseline)
    assert told() == "demo/optimized_orphan.py: found no workload for it; expected demo/workload_orphan.py"


def test_a_broken_workload_or_a_bad_kwarg_is_an_error_before_anything_runs(here, root, tmp_path):
    write_pair(root, "demo:broken", work="lambda n: 1 / 0", baseline=MARKS + BASELINE)
    (root / "demo/baseline_double.py").write_text(MARKS + BASELINE)
    finished = here("verify", "--root", root, "--artifacts-dir", tmp_path / "run")
    assert (finished.code, finished.error) == (
        1,
        "demo/workload_broken.py:14: raised ZeroDivisionError: division by zero; expected no exception",
    )
    finished = here("run", "--root", root, "--targets", "demo:double", "--kwargs", "m=3", "--artifacts-dir", tmp_path / "run")
    assert (finished.code, finished.error) == (1, "--kwargs m=3: workload_double.py has no such shape entry; expected some of n")
    assert not list(root.rglob("*.ran"))
    assert not (tmp_path / "run").exists()


def test_a_folder_that_cannot_be_written_is_told(here, root, tmp_path):
    (tmp_path / "file").touch()
    for folder, sentence in {tmp_path / "file/run": "Not a directory", Path("/proc/run"): "No such file or directory"}.items():
        finished = here("verify", "--root", root, "--artifacts-dir", folder)
        assert (finished.code, finished.error) == (1, f"{folder}: {sentence}; expected a folder that can be made")


def test_a_disk_without_room_is_told(cli, root, tmp_path):
    finished = cli("verify", "--root", root, "--artifacts-dir", tmp_path / "run", under=("prlimit", "--fsize=64"))
    assert finished.code == 8
    assert finished.stderr.startswith(f"error: {tmp_path}/run/")
    assert finished.stderr.endswith("/run/.room: File too large; expected room for 65536 bytes\n")


def test_a_document_that_cannot_be_read_is_told(here, tmp_path):
    assert here("report", tmp_path / "nowhere").error.startswith(f"{tmp_path}/nowhere: no such folder; expected that of a run")
    for text, sentence in {
        "": "line 1, column 1: Expecting value; expected a whole JSON document",
        '{"schema_version": 1,': "expected a whole JSON document",
        "[" * 200_000: "lists or objects nested too deep to read; expected a whole JSON document",
        '{"schema_version": 99}': "schema version 99; expected at most 1: a newer release wrote it",
    }.items():
        (tmp_path / "run.json").write_text(text)
        finished = here("report", tmp_path)
        assert finished.code == 1
        assert finished.error.startswith(f"{tmp_path}/run.json: ")
        assert sentence in finished.error


def test_without_a_command_there_is_help_and_failure(cli):
    finished = cli()
    assert finished.code == 1
    assert all(command in finished.stdout + finished.stderr for command in ("list-targets", "run", "verify", "doctor"))
    assert "error:" not in finished.stderr


def test_a_reader_who_has_seen_enough_is_no_error(root, tmp_path):
    for number in range(300):
        write_pair(root, f"demo:pair_{number}")
    listing = start("list-targets", "--json", "--root", root, scratch=tmp_path)
    listing.stdout.readline()
    listing.stdout.close()
    assert "Traceback" not in listing.stderr.read()
    listing.stderr.close()
    listing.wait(30)


# --- a pair that works


def test_a_pair_outside_the_project_is_timed_like_any_other(cli, tmp_path):
    finished = cli("run", "--root", ROOT / "tests/outside", *QUICK, "--artifacts-dir", tmp_path / "run")
    assert finished.code == 0, finished
    assert re.search(r"PASSED outside:top_k +\d+\.?\d*x \[", finished.stdout)
    _, (row,) = load(tmp_path / "run")
    assert row.timings["cpu"].speedups["optimized"].low > 1
    assert row.workload_file == "workload_top_k.py"
    (tmp_path / "run/report.md").unlink()
    report = cli("report", tmp_path / "run")
    assert (report.code, report.stderr) == (0, "")
    assert f"{tmp_path}/run/report.md" in report.stdout
    assert "outside:top_k" in (tmp_path / "run/report.md").read_text()


def test_json_is_one_valid_document_and_nothing_else(here, root, tmp_path):
    finished = here("run", "--json", "--root", root, "--targets", "demo:double_baseline", *QUICK, "--artifacts-dir", tmp_path / "run")
    assert finished.code == 0, finished
    document = json.loads(finished.stdout)
    for schema, found in {
        "outcome": document,
        "metrics": json.loads((tmp_path / "run/metrics.json").read_text()),
        "run": json.loads((tmp_path / "run/run.json").read_text()),
        "pair_metrics": json.loads((tmp_path / "run/demo_baseline_double/metrics.json").read_text()),
        "side_metrics": json.loads((tmp_path / "run/demo_baseline_double/baseline/metrics.json").read_text()),
    }.items():
        jsonschema.validate(found, json.loads((SCHEMAS / f"{schema}.schema.json").read_text()))
    assert (document["exit_code"], document["interrupted"], document["artifacts"]) == (0, False, str(tmp_path / "run"))
    assert document["machine"]["cores"] > 0
    (row,) = document["rows"]
    assert row["target"] == "demo:baseline_double"
    assert row["timings"]["cpu"]["time_ns"]["baseline"]["estimate"] > 0
    assert row["timings"]["cpu"]["speedups"] == {}


def test_both_halves_are_the_pair_and_a_dry_run_says_so_without_running(here, root, tmp_path):
    (root / "demo/baseline_double.py").write_text(MARKS + BASELINE)
    before = files_in(root)
    both = ("--targets", "demo:double_baseline", "--targets", "demo:optimized_double")
    finished = here("run", "--root", root, "--dry-run", *both, "--artifacts-dir", tmp_path / "run")
    assert (finished.code, finished.stderr) == (0, "")
    assert finished.stdout == "demo:double: baseline, optimized on cpu, timed by the host clock at cpu (n=512)\n"
    assert files_in(root) == before
    assert not (tmp_path / "run").exists()


def test_a_dry_run_in_json_tells_shapes_and_reasons_and_leaves_nothing(here, root, tmp_path):
    finished = here("run", "--root", root, "--dry-run", "--json", "--artifacts-dir", tmp_path / "run")
    assert (finished.code, finished.stderr) == (0, "")
    document = json.loads(finished.stdout)
    jsonschema.validate(document, json.loads((SCHEMAS / "dry_run.schema.json").read_text()))
    (row,) = document["rows"]
    assert (row["target"], row["device"], row["timed"], row["skip"]) == ("demo:double", "cpu", {"cpu": {"n": 512}}, "")
    assert row["sides"]["baseline"] == str(root / "demo/baseline_double.py")
    assert document["exit_code"] == 0
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_doctor_in_json_has_each_finding_and_the_exit_code(cli):
    finished = cli("doctor", "--json")
    document = json.loads(finished.stdout)
    jsonschema.validate(document, json.loads((SCHEMAS / "examination.schema.json").read_text()))
    assert document["exit_code"] == finished.code
    assert {"python", "torch", "disk"} <= {finding["name"] for finding in document["findings"]}
    assert all((finding["level"] == "ok") == (not finding["advice"]) for finding in document["findings"])


@pytest.mark.slow
def test_without_a_key_a_run_leaves_the_prompt_and_says_so(here, root, tmp_path, monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    finished = here("run", "--root", root, "--device", "cpu", "--llm-analysis", "--artifacts-dir", tmp_path / "run")
    assert finished.code == 0, finished
    said = "--llm-analysis: neither ANTHROPIC_API_KEY nor OPENAI_API_KEY is set, so nobody was asked"
    assert said in finished.stdout + finished.stderr
    assert "## demo:double: PASSED" in (tmp_path / "run/llm_prompt.md").read_text()
    assert "so nobody was asked" in (tmp_path / "run/report.md").read_text()


def test_a_new_pair_passes_as_it_is(here, tmp_path):
    (tmp_path / "root").mkdir()
    assert here("new", "ch07:row_sum", "--root", tmp_path / "root").code == 0
    finished = here("verify", "--root", tmp_path / "root", "--artifacts-dir", tmp_path / "run")
    assert finished.code == 0, finished
    assert "PASSED ch07:row_sum" in finished.stdout


# --- starting fast, and without what a parent must not have


def test_a_list_is_a_line_a_target_with_its_idea(here, root):
    finished = here("list-targets", "--root", root)
    assert (finished.code, finished.stdout) == (0, "demo:double  timed here  a product.\n")
    (listed,) = json.loads(here("list-targets", "--root", root, "--json").stdout)
    assert (listed["target"], listed["idea"], listed["needs"], listed["lacks"]) == ("demo:double", "a product.", [], "")
    assert listed["here"] == "timed here"


def test_techniques_are_listed(here, root):
    heads, first, *_ = here("list-techniques", "--root", root).stdout.splitlines()
    assert heads.split() == ["technique", "instruction", "sm", "first", "in"]
    assert first.split() == ["tma_load_tile", r"\bUTMALDG\.\dD\b", "90a,100a", "-"]
    listed = json.loads(here("list-techniques", "--root", root, "--json").stdout)
    assert listed[0]["name"] == "tma_load_tile"


def processor_seconds(code):
    """Seconds of the processor that a Python process takes for `code`, and the finished process."""
    before = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
    finished = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    return sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - before, finished


def test_listing_200_targets_is_fast_and_imports_nothing_heavy(tmp_path):
    for number in range(200):
        write_pair(tmp_path / "root", f"ch{number % 20 + 1:02d}:pair_{number}")
    code = (
        "import sys\nfrom tools.cli.benchmark_cli import run_command_line\n"
        f"code = run_command_line(['list-targets', '--root', {str(tmp_path / 'root')!r}])\n"
        "print(code, *sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    seconds, bare = [], []
    for _ in range(5):
        bare.append(processor_seconds("import argparse, ast, dataclasses, inspect, json, pathlib, re, typing")[0])
        took, finished = processor_seconds(code)
        seconds.append(took)
    imported = finished.stderr.split()
    assert imported[0] == "0"
    assert len(finished.stdout.splitlines()) == 200
    assert not {"torch", "triton", "rich", "numpy", "scipy", "jinja2", "psutil", "pydantic"} & set(imported)
    assert min(seconds) < 10 * min(bare), f"{seconds} s of the processor; an interpreter with the standard modules takes {bare} s"


def test_the_parent_of_a_whole_run_never_imports_torch(root, tmp_path):
    arguments = ["run", "--root", str(root), *QUICK, "--artifacts-dir", str(tmp_path / "run")]
    code = (
        f"import sys, tempfile\ntempfile.tempdir = {str(tmp_path)!r}\nfrom tools.cli.benchmark_cli import run_command_line\n"
        f"code = run_command_line({arguments!r})\n"
        "print(code, sorted({'torch', 'triton'} & set(sys.modules)), file=sys.stderr)"
    )
    finished = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert finished.stderr.splitlines()[-1] == "0 []", finished


# --- two runs, Ctrl-C, and the axe


@pytest.fixture
def stuck(root, tmp_path):
    """A run that has finished its first row and is held up by its second."""
    write_pair(root, "demo:stuck", baseline=SLEEPS)
    command = start("verify", "--root", root, "--device", "cpu", "--artifacts-dir", tmp_path / "run", scratch=tmp_path)
    until((tmp_path / "run/demo_stuck/baseline/log.txt").exists, "the beginning of the second row")
    yield command
    if command.poll() is None:
        command.kill()
        command.communicate()


def rest_is_made(here, root, tmp_path):
    """Repair the side that holds the run up, and resume: what was done stays, the other row is made."""
    done = (tmp_path / "run/demo_double/metrics.json").stat().st_mtime_ns
    (root / "demo/baseline_stuck.py").write_text(BASELINE)
    finished = here("verify", "--root", root, "--artifacts-dir", tmp_path / "run", "--resume")
    assert finished.code == 0, finished
    assert "demo:double is done already" in finished.stdout
    assert (tmp_path / "run/demo_double/metrics.json").stat().st_mtime_ns == done
    assert [row.target for row in load(tmp_path / "run")[1]] == ["demo:double", "demo:stuck"]


def test_verify_needs_no_machine_of_its_own_and_ctrl_c_keeps_what_is_done(here, stuck, root, tmp_path):
    assert here("verify", "--root", root, "--targets", "demo:double").code == 0
    begin = time.monotonic()
    finished, left = stop(stuck, signal.SIGINT)
    assert time.monotonic() - begin < 5, "nobody waits for the step that is running"
    assert (finished.code, left) == (130, [])
    assert "Traceback" not in finished.stderr
    assert "1 target: 1 PASSED, interrupted: 1 not done (demo:stuck)" in finished.stdout
    run, rows = load(tmp_path / "run")
    assert (run.interrupted, run.exit_code, [row.target for row in rows]) == (True, 130, ["demo:double"])
    assert not [path for path in (tmp_path / "run").iterdir() if path.name.startswith((".", "inputs_"))]
    rest_is_made(here, root, tmp_path)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=["SIGTERM", "SIGHUP"])
def test_a_signal_ends_a_run_as_ctrl_c_does(here, stuck, root, tmp_path, number, code):
    finished, left = stop(stuck, number)
    assert (finished.code, left) == (code, [])
    assert "Traceback" not in finished.stderr
    assert "1 target: 1 PASSED, interrupted: 1 not done (demo:stuck)" in finished.stdout
    run, rows = load(tmp_path / "run")
    assert (run.interrupted, run.exit_code, [row.target for row in rows]) == (True, code, ["demo:double"])
    assert {"report.md", "report.html", "junit.xml"} <= {path.name for path in (tmp_path / "run").iterdir()}
    suite = ET.parse(tmp_path / "run/junit.xml").find("testsuite")
    assert {key: suite.get(key) for key in ("tests", "failures", "errors")} == {"tests": "2", "failures": "0", "errors": "1"}
    assert not [path for path in (tmp_path / "run").iterdir() if path.name.startswith((".", "inputs_"))]
    assert not list(Path("/dev/shm").glob(f"benchmark_{stuck.pid}_*"))
    rest_is_made(here, root, tmp_path)


def test_a_terminal_that_closes_ends_a_run_that_keeps_what_is_done(root, tmp_path):
    write_pair(root, "demo:stuck", baseline=SLEEPS)
    arguments = ["verify", "--root", root, "--device", "cpu", "--artifacts-dir", tmp_path / "run"]
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update({"TMPDIR": str(tmp_path), "TERM": "xterm", "PYTHONPATH": str(ROOT)})
        os.execv(sys.executable, [sys.executable, str(ROOT / "tools/cli/benchmark_cli.py"), *map(str, arguments)])
    until((tmp_path / "run/demo_stuck/baseline/log.txt").exists, "the beginning of the second row")
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 129
    run, rows = load(tmp_path / "run")
    assert (run.interrupted, run.exit_code, [row.target for row in rows]) == (True, 129, ["demo:double"])
    assert {"report.md", "report.html", "junit.xml"} <= {path.name for path in (tmp_path / "run").iterdir()}
    assert not list((tmp_path / "run").glob("inputs_*"))


@pytest.mark.slow
def test_what_timeout_sends_to_a_whole_group_keeps_what_is_done(root, tmp_path):
    """`timeout` signals the run, and then its group, and so the run once more and the process that forks its children."""
    write_pair(root, "demo:stuck", baseline=SLEEPS)
    arguments = ("verify", "--root", root, "--device", "cpu", "--artifacts-dir", tmp_path / "run")
    finished = benchmark(*arguments, scratch=tmp_path, under=("timeout", "-s", "TERM", "20"))
    assert finished.code == 124, finished  # timeout's own
    run, rows = load(tmp_path / "run")
    assert (run.interrupted, run.exit_code, [row.target for row in rows]) == (True, 143, ["demo:double"])
    assert not [path for path in (tmp_path / "run").iterdir() if path.name.startswith((".", "inputs_"))]


def test_a_signal_before_the_first_row_is_one_sentence(root, tmp_path):
    (root / "demo/workload_double.py").write_text("__import__('time').sleep(60)\n")
    command = start("verify", "--root", root, "--device", "cpu", scratch=tmp_path)
    until(lambda: len(psutil.Process(command.pid).children(recursive=True)) > 1, "the reading of the workload")
    finished, left = stop(command, signal.SIGTERM)
    assert (finished.code, finished.error, left) == (143, "interrupted; nothing was kept", [])


def test_nohup_keeps_a_run_going(root, tmp_path):
    write_pair(root, "demo:slow", baseline=BASELINE.replace("lambda: x + x", "lambda: (__import__('time').sleep(0.2), x + x)[1]"))
    arguments = ("verify", "--root", root, "--device", "cpu", "--artifacts-dir", tmp_path / "run")
    command = start(*arguments, scratch=tmp_path, under=("nohup",))
    until((tmp_path / "run/demo_slow/baseline/log.txt").exists, "the beginning of the second row")
    finished, left = stop(command, signal.SIGHUP)
    assert (finished.code, left) == (0, [])
    assert "2 targets: 2 PASSED" in finished.stdout


def test_a_failure_is_repeated_by_the_command_that_it_tells(here, root, tmp_path):
    """The second row of a run, and wrong for some inputs alone."""
    odd = "lambda: x * 2 if int(x[0].abs() * 1e4) % 2 else x * 2 + 1"
    write_pair(root, "demo:odd", optimized=BASELINE.replace("lambda: x + x", odd), check_at='({"n": 3},) * 20')
    finished = here("verify", "--root", root, "--artifacts-dir", tmp_path / "run")
    assert finished.code == 4, finished
    (failure,) = [line for line in finished.stdout.splitlines() if line.startswith("WRONG_RESULT demo:odd: ")]
    told, _, command = failure.partition("; repeat: benchmark_cli ")
    assert re.search(r"optimized_odd\.py at n=\d+, input seed \d+: output y: .* outside .*; the worst, y\[\d+\], is .*; expected ", told)
    again = here(*shlex.split(command), "--artifacts-dir", tmp_path / "again")
    assert again.code == 4, again
    assert f"{told}; repeat: benchmark_cli {command}\n" in again.stdout
    seed = load(tmp_path / "run")[0].seed
    assert f"--targets demo:odd --seed {seed} --root {root} --device cpu" in command
    assert load(tmp_path / "again")[0].seed == seed


def test_a_run_is_resumed_with_the_seed_that_it_had(here, root, tmp_path):
    arguments = ("verify", "--root", root, "--artifacts-dir", tmp_path / "run")
    assert here(*arguments, "--seed", 5).code == 0
    assert here(*arguments, "--resume").code == 0
    assert here(*arguments, "--resume", "--seed", 5).code == 0
    refused = here(*arguments, "--resume", "--seed", 6)
    assert refused.error == f"--resume with --seed 6; expected 5, which made the rows of {tmp_path}/run"
    assert load(tmp_path / "run")[0].seed == 5


def test_a_killed_run_leaves_what_can_be_loaded_and_no_process(here, stuck, root, tmp_path):
    finished, left = stop(stuck, signal.SIGKILL)
    assert (finished.code, left) == (-signal.SIGKILL, [])
    run, rows = load(tmp_path / "run")
    assert (run.exit_code, [row.target for row in rows]) == (None, ["demo:double"])
    assert list((tmp_path / "run").glob("inputs_*"))
    rest_is_made(here, root, tmp_path)
    assert not list((tmp_path / "run").glob("inputs_*"))


ON_A_SMALL_DISK = 'mount -t tmpfs -o size="$1" none "$0" || exit 77; shift; "$@"; code=$?; cp -r "$0/run" "$0.kept"; exit $code'


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("unshare"), reason="no unshare")
@pytest.mark.parametrize("size", ["104k", "216k"])
def test_a_disk_that_is_full_in_the_middle_of_a_run_costs_no_measured_row(root, tmp_path, size):
    """What was measured is printed, and what machines read of the run says that the disk was full."""
    for name in ("second", "third"):
        write_pair(root, f"demo:{name}")
    disk = tmp_path / "disk"
    disk.mkdir()
    arguments = ("run", "--root", root, "--device", "cpu", "--iterations", "20", "--warmup", "0", "--artifacts-dir", disk / "run")
    finished = benchmark(*arguments, scratch=tmp_path, under=("unshare", "-rm", "bash", "-c", ON_A_SMALL_DISK, str(disk), size))
    if finished.stderr.startswith(("unshare:", "mount:")):
        pytest.skip(finished.stderr)
    assert finished.code == 8, finished
    measured = re.findall(r"^\[\d/3\] PASSED (\S+)", finished.stdout, re.MULTILINE)
    assert measured
    assert measured == re.findall(r"^(demo:\w+) @cpu ", finished.stdout, re.MULTILINE)
    assert f"{len(measured)} target{'s' * (len(measured) > 1)}: {len(measured)} PASSED, interrupted" in finished.stdout
    run, rows = load(Path(f"{disk}.kept"))
    assert (run.exit_code, run.interrupted) == (8, True)
    assert {row.target for row in rows} <= set(measured)
    assert 'value="8"' in Path(f"{disk}.kept/junit.xml").read_text()

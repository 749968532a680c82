"""A whole run: a row that goes wrong costs itself alone, and a run that is cut short keeps what it had and can go on."""

import json
import re
import resource
import shutil
from contextlib import AbstractContextManager
from pathlib import Path
from types import SimpleNamespace

import pytest

from common.python.build import nvcc
from common.python.child.server import ROLES, answer_safely
from common.python.errors import BenchmarkError, ExitCode, SideFailure, Status, UnfitEnvironment
from common.python.machine.description import Source, describe_machine
from common.python.machine.doctor import Finding
from common.python.processes.messages import Failed
from common.python.report.run_folder import RunFolder, load
from common.python.results import Metrics, Origin
from common.python.run import suite
from common.python.run.resuming import of_other_gpus, require_same_place
from common.python.settings import Settings
from common.python.storage import read_document
from tests.support.commands import OPTIMIZED, Watcher, run_here, write_pair
from tests.support.factories import a_row
from tests.tools.cli.recorded_bench import H200

LAUNCH = "const float* x, float* y, int n, cudaStream_t stream"
CUDA = f'// Side.\n#include "common/cuda/launch.cuh"\nLAUNCH({LAUNCH}) {{ return cudaGetLastError(); }}\n'


def a_side(body):
    return f'"""Side."""\n\n\ndef prepare(x):\n    {body}\n'


def rows_of(folder):
    return {row.target: row for row in load(folder)[1]}


# --- statuses: one run of everything that can go wrong

SLEEPS = a_side("return lambda: __import__('time').sleep(60)")
PAIRS = {
    "demo:a_good": ({}, "PASSED", ""),
    "demo:crashes": (
        {"baseline": a_side("__import__('os')._exit(3)")},
        "CRASHED",
        "baseline_crashes.py: the prepare process ended with exit",
    ),
    "demo:raises": (
        {"optimized": a_side("raise ValueError('no')")},
        "CRASHED",
        "optimized_raises.py:5: raised ValueError: no; expected no",
    ),
    "demo:wrong": ({"optimized": a_side("return lambda: x * 3")}, "WRONG_RESULT", "optimized_wrong.py at n=3, input seed "),
    "demo:nan": ({"optimized": a_side("return lambda: x * float('nan')")}, "WRONG_RESULT", "optimized_nan.py at n=3, input seed "),
    "demo:modifies": (
        {"baseline": a_side("return lambda: x.mul_(2).clone()")},
        "INPUT_MODIFIED",
        "baseline_modifies.py at n=3, input seed ",
    ),
    "demo:alias": ({"baseline": a_side("return lambda: x")}, "WRONG_RESULT", "baseline_alias.py: output y shares storage with input x"),
    "demo:hungry": (
        {"baseline": a_side("return lambda: x.new_empty(1 << 50)")},
        "OUT_OF_MEMORY",
        "baseline_hungry.py:5: raised RuntimeError",
    ),
    "demo:reference": ({"reference": "lambda x: x[99]"}, "CRASHED", "workload_reference.py:10: raised IndexError: "),
    "demo:sideways": (
        {"metrics": "lambda x: {'q': Metric(1.0, 'furlongs', 'sideways')}"},
        "CRASHED",
        "workload_sideways.py: metrics: q: better='sideways'; expected higher or lower",
    ),
    "demo:reports": ({"metrics": "lambda x: {'q': Metric(1.0, 'furlongs', 'higher')}"}, "PASSED", ""),
    "demo:shapeless": (
        {"reference": "lambda x: x[:1]"},
        "CRASHED",
        "workload_shapeless.py: reference returned y of shape (1,); expected (3,)",
    ),
    "demo:skipped": ({"optimized": OPTIMIZED.replace('"""\n', '"""\n# needs: wgmma\n', 1)}, "SKIPPED", "needs wgmma; no CUDA device"),
    "demo:unbound": (
        {"baseline": CUDA, "optimized": CUDA.replace("int n", "float n")},
        "BUILD_FAILED",
        "demo/optimized_unbound.cu: found argument `float n` for n=3; expected `int n`",
    ),
    "demo:z_good": ({}, "PASSED", ""),
}


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    place = tmp_path_factory.mktemp("suite")
    for target, (parts, _, _) in PAIRS.items():
        write_pair(place / "root", target, **parts)
    watcher = Watcher()
    return run_here(place / "root", place / "run", watcher, command="verify"), watcher


@pytest.mark.parametrize("target", PAIRS)
def test_a_row_has_the_status_it_earned_and_one_sentence(everything, target):
    _, status, reason = PAIRS[target]
    row = {row.target: row for row in everything[0].rows}[target]
    assert (row.status, row.reason[: len(reason)]) == (status, reason)
    assert "\n" not in row.reason
    assert row.timings == {}


def test_a_row_that_goes_wrong_costs_itself_alone(everything):
    outcome, watcher = everything
    assert watcher.begun == sorted(PAIRS) == [row.target for row in outcome.rows]
    assert rows_of(outcome.folder) == {row.target: row for row in outcome.rows}
    assert outcome.exit_code is ExitCode.WRONG
    assert (outcome.run.exit_code, outcome.run.interrupted) == (4, False)


def test_only_the_runs_own_files_are_left(everything):
    folder = everything[0].folder
    assert not [path.name for path in folder.iterdir() if path.name.startswith((".", "inputs_"))]
    assert {"run.json", "metrics.json", "report.md", "junit.xml"} <= {path.name for path in folder.iterdir()}
    assert {path.name for path in (folder / "demo_a_good").iterdir()} >= {"metrics.json", "baseline", "optimized"}


def test_a_row_goes_on_without_a_library_that_cannot_run_here_and_says_why(tmp_path):
    library = OPTIMIZED.replace('"""\n', '"""\n# needs: gpus 1, package no_such_package\n', 1)
    outcome = run_here(write_pair(tmp_path / "root", library=library), tmp_path / "run", command="verify")
    (row,) = outcome.rows
    assert (row.status, list(row.sides), outcome.exit_code) == (Status.PASSED, ["baseline", "optimized"], ExitCode.GOOD)
    why = "needs the Python package no_such_package; not installed; needs 1 GPU; this machine has 0"
    assert f"library_double.py is left out: {why}" in row.notes


def test_what_no_wait_could_mend_is_told_before_the_wait_for_the_machine(three, tmp_path, monkeypatch):
    def waits(*_):
        raise AssertionError("waited")

    monkeypatch.setattr("common.python.run.suite.lock", waits)
    (tmp_path / "full").mkdir()
    (tmp_path / "full/thesis.txt").write_text("all of it")
    usage = {
        "full is not empty; expected an absent or empty folder": {"artifacts_dir": tmp_path / "full"},
        "thesis.txt/x: .*; expected a folder that can be made": {"artifacts_dir": tmp_path / "full/thesis.txt/x"},
        "^--resume: .*/none does not exist; expected the folder of the run to resume": {"artifacts_dir": tmp_path / "none", "resume": True},
    }
    for told, settings in usage.items():
        with pytest.raises(BenchmarkError, match=told):
            suite.run_suite(Settings(root=three, device="cpu", **settings), Watcher())
    with pytest.raises(AssertionError, match="waited"):
        suite.run_suite(Settings(root=three, device="cpu", artifacts_dir=tmp_path / "new/run"), Watcher())
    assert not (tmp_path / "new").exists()


# --- building


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc")
def test_what_does_not_compile_is_told_with_its_line_and_what_does_is_skipped_for_want_of_a_gpu(tmp_path):
    root = write_pair(tmp_path / "root", "demo:broken", optimized=CUDA.replace("{ return", "{ undeclared(); return"))
    write_pair(root, "demo:impossible", optimized=CUDA.replace("// Side.\n", "// Side.\n// needs: wgmma, tcgen05\n"))
    write_pair(root, "demo:whole", optimized=CUDA)
    outcome = run_here(root, tmp_path / "run", command="verify")
    broken, impossible, whole = outcome.rows
    assert broken.status is impossible.status is Status.BUILD_FAILED
    assert broken.reason.startswith('demo/optimized_broken.cu(3): error: identifier "undeclared" is undefined')
    assert impossible.reason == "optimized_impossible.cu: needs: found 'wgmma, tcgen05'; expected what one of 90a, 100a has"
    assert (whole.status, whole.reason) == (Status.SKIPPED, "no CUDA device")
    assert outcome.exit_code is ExitCode.BROKEN


class ChildHere(AbstractContextManager):
    """A child that is this process: it answers when it is asked for the answer."""

    def __init__(self, role):
        self.role = role

    def __exit__(self, *_):
        pass

    def begin(self, request):
        pass

    def finish(self, request, expected, seconds):
        answer = answer_safely(ROLES[self.role](), request)
        if isinstance(answer, Failed):
            raise SideFailure(answer.status, answer.reason)
        return answer

    ask = finish


class InThisProcess:
    """A fork server whose children are this process, so that a test can take things away from them."""

    def fork(self, role, log, core=-1):
        return ChildHere(role)


def test_without_nvcc_a_cuda_pair_is_skipped(tmp_path, monkeypatch):
    monkeypatch.setattr(nvcc.shutil, "which", lambda _: None)
    root = write_pair(tmp_path / "root", baseline=CUDA, optimized=CUDA)
    outcome = run_here(root, tmp_path / "run", server=InThisProcess(), command="verify")
    (row,) = outcome.rows
    assert (row.status, outcome.exit_code) == (Status.SKIPPED, ExitCode.NOTHING_MEASURED)
    assert row.reason == "no nvcc on PATH or in /usr/local/cuda/bin; expected a CUDA toolkit to build .cu files"


# --- cut short, and going on


@pytest.fixture
def three(tmp_path):
    for name in ("one", "three", "two"):
        write_pair(tmp_path / "root", f"demo:{name}")
    return tmp_path / "root"


def interrupt(_):
    raise KeyboardInterrupt


def test_an_interrupted_run_keeps_its_rows_and_resuming_makes_the_others(three, tmp_path):
    first = run_here(three, tmp_path / "run", Watcher(finished=interrupt), command="verify")
    assert (first.exit_code, first.run.interrupted, [row.target for row in first.rows]) == (ExitCode.INTERRUPTED, True, ["demo:one"])
    assert load(tmp_path / "run")[0].exit_code == 130
    done = (tmp_path / "run/demo_one/metrics.json").stat().st_mtime_ns

    watcher = Watcher()
    second = run_here(three, tmp_path / "run", watcher, command="verify", resume=True)
    assert watcher.begun == ["demo:three", "demo:two"]
    assert "demo:one is done already" in watcher.notes
    assert (second.exit_code, second.run.interrupted) == (ExitCode.GOOD, False)
    assert list(rows_of(tmp_path / "run")) == ["demo:one", "demo:three", "demo:two"]
    assert (tmp_path / "run/demo_one/metrics.json").stat().st_mtime_ns == done


def test_resuming_does_again_what_was_edited_since_and_nothing_else(three, tmp_path):
    helper = three / "demo/shared_two.py"
    helper.write_text("def double(x):\n    return x * 2\n")
    (three / "demo/optimized_two.py").write_text(f"from shared_two import double\n{OPTIMIZED}".replace("x * 2", "double(x)"))
    first = run_here(three, tmp_path / "run", command="verify")
    assert first.rows[-1].sources.keys() == {f"demo/{name}_two.py" for name in ("workload", "baseline", "optimized", "shared")}

    kept = Watcher()
    assert run_here(three, tmp_path / "run", kept, command="verify", resume=True).exit_code is ExitCode.GOOD
    assert kept.begun == []

    (three / "demo/optimized_one.py").write_text(OPTIMIZED.replace("x * 2", "x * 3"))
    helper.write_text("def double(x):\n    return x + x\n")
    watcher = Watcher()
    second = run_here(three, tmp_path / "run", watcher, command="verify", resume=True)
    assert watcher.begun == ["demo:one", "demo:two"]
    assert "demo:one is done again: demo/optimized_one.py changed since" in watcher.notes
    assert "demo:two is done again: demo/shared_two.py changed since" in watcher.notes
    assert "demo:three is done already" in watcher.notes
    assert {row.target: row.status for row in second.rows}["demo:one"] is Status.WRONG_RESULT
    assert second.exit_code is ExitCode.WRONG


def test_targets_that_spell_alike_share_no_folder_in_a_run_or_in_what_resumes_it(tmp_path):
    root = write_pair(tmp_path / "root", "demo_a:b")
    write_pair(root, "demo:a_b")
    first = run_here(root, tmp_path / "run", Watcher(finished=interrupt), command="verify")
    done = first.rows[0].target
    folders = dict(first.run.folders)
    assert sorted(folders) == ["demo:a_b", "demo_a:b"]
    other = next(target for target in folders if target != done)

    run_here(root, tmp_path / "run", command="verify", resume=True, targets=(other,))
    assert load(tmp_path / "run")[0].folders == folders
    found = {json.loads(path.read_text())["target"]: path.parent.name for path in (tmp_path / "run").glob("*/metrics.json")}
    assert found == folders


def test_a_run_is_resumed_with_the_sanitizers_that_it_had(three, tmp_path):
    settings = {"command": "verify", "targets": ("demo:one",), "sanitize": ("memcheck", "synccheck")}
    run_here(three, tmp_path / "run", **settings)
    watcher = Watcher()
    run_here(three, tmp_path / "run", watcher, resume=True, **settings)
    assert "demo:one is done already" in watcher.notes
    with pytest.raises(BenchmarkError, match=r"^--resume with --sanitize memcheck; expected --sanitize memcheck synccheck, which"):
        run_here(three, tmp_path / "run", resume=True, **settings | {"sanitize": ("memcheck",)})


def test_resuming_with_other_settings_is_refused_and_changes_nothing(three, tmp_path):
    run_here(three, tmp_path / "run", command="verify", targets=("demo:one",))
    before = (tmp_path / "run/run.json").read_text()
    with pytest.raises(BenchmarkError, match=r"^--resume with --kwargs n=7; expected no --kwargs, which made the rows of .*run\.json$"):
        run_here(three, tmp_path / "run", command="verify", resume=True, kwargs={"n": "7"})
    assert (tmp_path / "run/run.json").read_text() == before


def test_a_suite_limit_that_is_over_leaves_a_row_for_each_target_and_resuming_makes_them(three, tmp_path):
    late = run_here(three, tmp_path / "run", command="verify", suite_timeout=0.001)
    assert late.exit_code is ExitCode.BROKEN
    assert {row.status for row in late.rows} == {Status.TIMEOUT}
    assert {row.reason for row in late.rows} == {"--suite-timeout 0.001 was over before its turn came; expected it to start by then"}
    assert late.rows[0].workload_file == "demo/workload_one.py"

    watcher = Watcher()
    in_time = run_here(three, tmp_path / "run", watcher, command="verify", resume=True)
    assert watcher.begun == ["demo:one", "demo:three", "demo:two"]
    assert in_time.exit_code is ExitCode.GOOD


def test_a_row_that_the_suite_limit_cuts_off_says_so(tmp_path):
    root = write_pair(tmp_path / "root", "demo:a_sleeper", baseline=SLEEPS)
    write_pair(root, "demo:later")
    outcome = run_here(root, tmp_path / "run", command="verify", suite_timeout=3.0)
    sleeper, later = outcome.rows
    assert sleeper.status is later.status is Status.TIMEOUT
    assert sleeper.reason.startswith("--suite-timeout 3 was over: baseline_a_sleeper.py: check took more than ")
    assert "repeat: " not in sleeper.reason
    assert later.reason.startswith("--suite-timeout 3 was over before its turn came")


def test_a_step_that_hangs_is_given_up_at_its_own_limit(tmp_path):
    root = write_pair(tmp_path / "root", baseline=SLEEPS)
    (row,) = run_here(root, tmp_path / "run", command="verify", timeout_multiplier=0.005).rows
    told, _, command = row.reason.partition("; repeat: benchmark_cli ")
    limit = "baseline_double.py: check took more than 1.2 s; expected an answer by then (--timeout-multiplier 0.005)"
    assert (row.status, told) == (Status.TIMEOUT, limit)
    assert re.fullmatch(r"verify --targets demo:double --seed \d+ .*--timeout-multiplier 0\.005", command)


def test_a_row_whose_limit_is_used_up_says_by_what(tmp_path):
    """One side hangs in its fifth call, after the two of each of two checks; the other is slow in all, and honest."""
    counted = "calls = []; return lambda: (calls.append(0), __import__('time').sleep({}), x * 2)[-1]"
    hangs = a_side(counted.format("60 if len(calls) > 4 else 0"))
    root = write_pair(tmp_path / "root", "demo:hangs", optimized=hangs)
    write_pair(root, "demo:slow", optimized=a_side(counted.format("0.15")))
    hung, slow = run_here(root, tmp_path / "run", timeout_multiplier=0.02).rows
    begin = r"measuring used up its limit of 4\.8 s, which --timeout-multiplier raises: the first process pair began after 0\.\d s, "
    assert hung.status is slow.status is Status.TIMEOUT
    assert re.match(begin + r"0 done in 0\.0 s; then optimized_hangs\.py: warm took more than 4\.", hung.reason)
    assert re.match(
        begin + r"[1-5] done in [1-5]\.\d s; then .*; expected all by then \(--timeout-multiplier 0\.02\); repeat: benchmark_cli run ",
        slow.reason,
    )


def test_a_sweep_that_is_interrupted_keeps_its_values_and_resuming_measures_the_others(tmp_path):
    root, part = write_pair(tmp_path / "root"), tmp_path / "run/demo_double/part_metrics.json"
    watcher, swept = Watcher(), {"sweep": {"n": ("16", "32")}, "iterations": 1}
    watcher.phase = lambda *_: interrupt(_) if part.exists() else None  # of the second value, which has begun then
    first = run_here(root, tmp_path / "run", watcher, **swept)
    assert (first.exit_code, first.rows) == (ExitCode.INTERRUPTED, ())
    (begun,) = read_document(part, Metrics).rows
    assert (begun.status, list(begun.timings), bool(begun.origin)) == (Status.PASSED, ["n=16"], True)

    second = run_here(root, tmp_path / "run", resume=True, **swept)
    (row,) = second.rows
    assert (second.exit_code, list(row.timings)) == (ExitCode.GOOD, ["n=16", "n=32"])
    assert row.timings["n=16"] == begun.timings["n=16"]
    assert {check.shape["n"] for check in row.sides["optimized"].checks if check.timed_call} == {16, 32}
    assert not part.exists()


def test_values_that_were_measured_on_another_gpu_are_measured_again(tmp_path):
    folder, watcher = RunFolder(tmp_path, "run"), Watcher()
    folder.write_part(a_row("ch07:copy", origin=Origin(gpus=("NVIDIA H200 GPU-2",))))
    plan = SimpleNamespace(target="ch07:copy", device="cuda", gpus=(SimpleNamespace(name="NVIDIA H200", uuid="GPU-1", driver="580.1"),))
    machine = SimpleNamespace(root=None, project=None, packages={})
    sources = {"ch07:copy": {"ch07/optimized_copy.py": "1"}}
    assert suite._begun_before([plan], folder, machine, sources, watcher) == {}
    assert watcher.notes == ["ch07:copy was begun on NVIDIA H200 GPU-2: all of its values are measured here"]
    plan.gpus[0].uuid = "GPU-2"
    assert suite._begun_before([plan], folder, machine, sources, watcher).keys() == {"ch07:copy"}
    folder.write_part(a_row("ch07:copy", origin=Origin(gpus=("NVIDIA H200 GPU-2",)), sources=sources["ch07:copy"]))
    assert suite._begun_before([plan], folder, machine, sources, watcher).keys() == {"ch07:copy"}
    edited = {"ch07:copy": {"ch07/optimized_copy.py": "2"}}
    assert suite._begun_before([plan], folder, machine, edited, watcher) == {}
    assert watcher.notes[1:] == ["ch07:copy is begun again: ch07/optimized_copy.py changed since"]


def test_a_disk_that_fills_up_ends_a_run_with_all_its_rows_and_those_before_it_can_be_loaded(three, tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    told: list[str] = []
    notes: list[str] = []

    def fill(target):
        if target == "demo:three":
            resource.setrlimit(resource.RLIMIT_FSIZE, (256, hard))

    try:
        watcher = Watcher(started=fill, finished=told.append)
        watcher.note = notes.append
        full = run_here(three, tmp_path / "run", watcher, command="verify")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(rows_of(tmp_path / "run")) == ["demo:one"]
    assert told == ["demo:one", "demo:three"]
    assert full.exit_code is ExitCode.FULL_DISK
    assert [row.target for row in full.rows] == told, "what was measured is printed even where it cannot be kept"
    assert any(
        re.search(r"the disk is full, .*metrics\.json: File too large; expected to write \d+ characters there$", note) for note in notes
    )
    assert run_here(three, tmp_path / "run", command="verify", resume=True).exit_code is ExitCode.GOOD


def test_a_disk_without_room_for_the_page_alone_keeps_every_row_and_what_machines_read(three, tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    notes: list[str] = []
    watcher = Watcher(started=lambda _: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard)))
    watcher.note = notes.append
    try:
        full = run_here(three, tmp_path / "run", watcher, command="verify")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert full.exit_code is ExitCode.FULL_DISK
    assert notes[-1] == f"the disk is full: {tmp_path}/run lacks report.html, or has an older one"
    run, rows = load(tmp_path / "run")
    assert (run.exit_code, run.interrupted, list(rows)) == (ExitCode.FULL_DISK, False, list(full.rows))
    assert 'value="8"' in (tmp_path / "run/junit.xml").read_text()
    assert not (tmp_path / "run/report.html").exists()
    assert run_here(three, tmp_path / "run", command="verify", resume=True).exit_code is ExitCode.GOOD
    assert (tmp_path / "run/report.html").exists()


def test_a_run_goes_on_on_the_gpu_model_and_the_commit_that_its_rows_are_of():
    def saved(**changes):
        return {"gpus": [{"name": "NVIDIA H200", "uuid": "GPU-1"}], "project": {"commit": "a" * 40, "dirty": False}} | changes

    gpu = H200.model_copy(update={"uuid": "GPU-1"})
    machine = describe_machine(Path("/")).model_copy(update={"gpus": (gpu,), "project": Source(commit="a" * 40, dirty=True), "root": None})
    assert require_same_place(Path("run.json"), saved(), machine) == ()
    other = machine.model_copy(update={"gpus": (gpu.model_copy(update={"uuid": "GPU-2"}),)})
    assert require_same_place(Path("run.json"), saved(), other) == ("--resume on another NVIDIA H200 than made the rows that are done",)
    with pytest.raises(BenchmarkError, match=r"^--resume on NVIDIA H200; expected NVIDIA H100, which made the rows of run\.json$"):
        require_same_place(Path("run.json"), saved(gpus=[{"name": "NVIDIA H100", "uuid": "GPU-3"}]), machine)
    with pytest.raises(BenchmarkError, match=r"^--resume on NVIDIA H200; expected a machine without a GPU, which made"):
        require_same_place(Path("run.json"), saved(gpus=[]), machine)
    with pytest.raises(BenchmarkError, match=r"^--resume with the harness at commit aaaaaaaaaa; expected bbbbbbbbbb, which made"):
        require_same_place(Path("run.json"), saved(project={"commit": "b" * 40, "dirty": False}), machine)


def test_a_row_says_where_it_was_made_and_another_gpu_is_shown():
    rows = [a_row(f"ch07:{name}", origin=Origin(gpus=(f"NVIDIA H200 {name}",), commit="a" * 40)) for name in "ab"]
    first, last = of_other_gpus(rows)
    assert first.notes[-1:] == ("made on NVIDIA H200 a",)
    assert last.notes == rows[1].notes
    assert of_other_gpus([first, last]) == [first, last]


# --- the request itself


def refusal(root, folder, **choices):
    watcher = Watcher()
    with pytest.raises(BenchmarkError) as caught:
        run_here(root, folder, watcher, command="verify", **choices)
    assert watcher.begun == []
    return str(caught.value)


def test_a_folder_that_cannot_take_a_run_is_told_before_anything_runs(three, tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "full").mkdir()
    (tmp_path / "full/notes.txt").touch()
    assert refusal(three, tmp_path / "file") == f"{tmp_path}/file is not a folder; expected a folder, or nothing there yet"
    assert "is not empty; expected an absent or empty folder, or --resume" in refusal(three, tmp_path / "full")
    assert f"{tmp_path}/full/run.json is missing" in refusal(three, tmp_path / "full", resume=True)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "run.json: line 1, column 1: Expecting value; expected a whole JSON document"),
        ('{"schema_version": 1, "run_id"', "expected a whole JSON document"),
        ("[]", "run.json: no schema_version; expected a document of schema version 1 to"),
        ('{"schema_version": 999}', "run.json: schema version 999; expected at most"),
        ('{"schema_version": 1}', "run.json: run_id: Field required; expected schema version 1 as this commit has it"),
    ],
)
def test_a_document_that_is_not_one_stops_a_resumed_run_before_anything_runs(three, tmp_path, text, sentence):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/run.json").write_text(text)
    assert sentence in refusal(three, tmp_path / "run", resume=True)
    assert (tmp_path / "run/run.json").read_text() == text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", ": line 1, column 2: Expecting property name enclosed in double quotes; expected a whole JSON document"),
        ('{"schema_version": 1, "gpu": "h100", "pairs": {}}', ": found gpu h100; expected h200, as in its name"),
    ],
)
def test_what_is_expected_on_another_gpu_is_read_before_anything_runs(three, tmp_path, text, sentence):
    kept = three / "demo/expectations_h200.json"
    kept.write_text(text)
    assert refusal(three, tmp_path / "run") == f"{kept}{sentence}"
    kept.write_text('{"schema_version": 1, "gpu": "h200", "pairs": {}}')
    assert run_here(three, tmp_path / "run", command="verify", targets=("demo:one",)).exit_code is ExitCode.GOOD


def test_a_run_in_which_nothing_could_be_gated_is_no_success_where_that_was_required(tmp_path):
    root = write_pair(tmp_path / "root")
    outcome = run_here(root, tmp_path / "run", iterations=1, warmup=0, require_expectations=True)
    assert outcome.rows[0].status is Status.PASSED
    assert outcome.exit_code is ExitCode.NOTHING_MEASURED
    assert outcome.rows[0].ungated == {"cpu": "a CPU's time is never gated"}


def test_the_settings_are_saved_whole(everything):
    saved = json.loads((everything[0].folder / "run.json").read_text())["settings"]
    assert saved["command"] == "verify"
    assert saved.keys() == Settings.model_fields.keys()


def test_a_machine_that_is_not_fit_to_measure_on_is_fit_to_verify_on(tmp_path, monkeypatch):
    bad = Finding(name="GPU 0 processes", level="bad", found="process 7 computes on it", advice="wait for it")
    monkeypatch.setattr(suite, "fitness", lambda *_: (bad,))
    root = write_pair(tmp_path / "root")
    told = "GPU 0 processes: process 7 computes on it; wait for it"
    with pytest.raises(UnfitEnvironment, match=re.escape(f"found {told}; expected a machine that is fit to measure on")):
        run_here(root, tmp_path / "run", command="run")
    watcher = Watcher()
    (row,) = run_here(root, tmp_path / "verified", watcher, command="verify").rows
    assert row.status is Status.PASSED
    assert f"this machine is not fit to measure on: {told}" in watcher.notes

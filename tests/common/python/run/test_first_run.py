"""A first run does every step that makes sense, says how each ended, can be resumed, and leaves a bundle without what is private."""

import json
import re
import time
import zipfile
from pathlib import Path

import jsonschema
import pytest

from common.python.errors import BenchmarkError, ExitCode
from common.python.machine import ceilings as machine_ceilings
from common.python.machine import description
from common.python.machine.description import Gpu, describe_machine
from common.python.machine.doctor import Finding
from common.python.pairs.discovery import discover
from common.python.project import PROJECT_ROOT
from common.python.report.run_folder import RunFolder, load
from common.python.results import VerdictKind
from common.python.run import first_run
from common.python.run.first_run import Request, newer_than_measured
from common.python.run.peak import NO_TIME
from common.python.run.suite import Outcome
from tests.support.commands import OPTIMIZED, benchmark_here, write_pair
from tests.support.factories import a_row, a_run, a_verdict
from tests.support.synthetic_ceilings import synthetic_ceilings

WRONG = OPTIMIZED.replace("x * 2", "x * 3")
GPU = Gpu(index=0, name="NVIDIA B200", uuid="GPU-1", capability=(10, 0), memory_bytes=1 << 40, driver="1")


@pytest.fixture
def steps(tmp_path, monkeypatch):
    """What doctor and peak do and find, for a test to replace; the names of those that were begun, in order."""
    begun = []
    kept = synthetic_ceilings(device="cpu")

    def examine(*_):
        begun.append("doctor")
        return (Finding(name="disk", level="ok", found="room", advice=""),)

    def measure_peaks(*_):
        begun.append("peak")
        return [(kept, tmp_path / "cpu-1.json")]

    monkeypatch.setattr(first_run, "examine", examine)
    monkeypatch.setattr(first_run, "measure_peaks", measure_peaks)
    monkeypatch.setattr(machine_ceilings, "MACHINES", tmp_path / "machines")
    return begun


@pytest.fixture
def here(tmp_path, steps):
    root = tmp_path / "root"

    def run(*arguments):
        return benchmark_here("first-run", "--root", root, "--device", "cpu", *arguments, scratch=tmp_path)

    return run


def bundle_in(root):
    """The texts of the one bundle below the root's artifacts, by name."""
    (path,) = root.glob("artifacts/first_run_*.zip")
    with zipfile.ZipFile(path) as archive:
        return {name.removeprefix(f"{path.stem}/"): archive.read(name).decode() for name in archive.namelist()}


def ends(root):
    """Each step and how it ended, as the one first run below the root says."""
    (path,) = root.glob("artifacts/first_run_*/first_run.json")
    document = json.loads(path.read_text())
    schema = json.loads((PROJECT_ROOT / "common/schemas/first_run.schema.json").read_text())
    jsonschema.validate(document, schema)
    return {step["name"]: step["exit_code"] for step in document["steps"]}, document["exit_code"]


def test_every_step_is_done_told_bundled_and_kept(here, steps, tmp_path, monkeypatch):
    root = write_pair(tmp_path / "root")
    monkeypatch.setenv("CUDA_PLANTED", "a value of the user's")
    monkeypatch.setattr(first_run, "describe_machine", lambda root: describe_machine(root, variables={"CUDA_PLANTED": "a value"}))
    done = here()
    assert done.code == 0, done
    assert ends(root) == (dict.fromkeys(first_run.STEPS, 0), 0)
    texts = bundle_in(root)
    assert texts.keys() >= {
        "first_run.json",
        "doctor.json",
        "ceilings/cpu-1.json",
        "verify/metrics.json",
        "run/report.html",
        "run/junit.xml",
    }
    private = (str(root), "CUDA_PLANTED", "a value")
    (kept,) = root.glob("artifacts/*/run/run.json")
    assert [word for word in private if word not in kept.read_text()] == [], "so a copy would not do"
    assert [(name, word) for name, text in texts.items() for word in private if word in text] == []
    assert json.loads(texts["run/run.json"])["settings"]["root"] == "ROOT"
    assert done.stdout.index("bytes  run/report.html") < done.stdout.index(".zip\n", done.stdout.index("bytes  run")), (
        "listed, then written"
    )

    again = here("--resume")
    assert again.code == 0, again
    assert steps == ["doctor", "peak", "doctor"]
    assert "peak is done already" in again.stdout
    assert again.stdout.count("demo:double is done already") == 2
    assert "run: targets that can run here: 1 of 1" in (told := here("--dry-run").stdout)
    assert told.count("s when 1 were done here before") == 2


def test_a_step_that_fails_stops_no_other_and_the_worst_is_told(here, tmp_path, monkeypatch):
    def measure_peaks(*_):
        raise BenchmarkError("no ceiling; expected one")

    monkeypatch.setattr(first_run, "measure_peaks", measure_peaks)
    root = write_pair(tmp_path / "root", optimized=WRONG)
    done = here()
    assert done.code == ExitCode.WRONG, done
    assert ends(root) == ({"doctor": 0, "peak": 1, "verify": 4, "run": 4}, 4)
    assert "peak: exit 1 after 0 s: no ceiling; expected one" in done.stdout
    assert "WRONG_RESULT" in bundle_in(root)["run/metrics.json"]


def test_bad_findings_are_unfit_and_verify_goes_on(here, tmp_path, monkeypatch):
    bad = (Finding(name="torch", level="bad", found="none", advice="install it"),)
    monkeypatch.setattr(first_run, "examine", lambda *_: bad)
    root = write_pair(tmp_path / "root", optimized=WRONG)
    assert here().code == ExitCode.UNFIT
    assert ends(root)[0] == {"doctor": 6, "peak": 0, "verify": 4, "run": 4}
    assert json.loads(bundle_in(root)["doctor.json"])["exit_code"] == 6


def test_minutes_that_are_over_leave_the_rest_to_a_resumed_run(here, tmp_path, monkeypatch):
    def examine(*_):
        time.sleep(0.7)
        return ()

    monkeypatch.setattr(first_run, "print_findings", lambda *_: None)
    monkeypatch.setattr(first_run, "examine", examine)
    root = write_pair(tmp_path / "root", optimized=WRONG)
    assert here("--minutes", "0.01").code == ExitCode.BROKEN
    assert ends(root) == ({"doctor": 0, "peak": 7, "verify": 7, "run": 7}, 7)
    assert bundle_in(root).keys() == {"first_run.json", "doctor.json"}
    assert here("--resume").code == ExitCode.WRONG
    assert ends(root)[0] == {"doctor": 0, "peak": 0, "verify": 4, "run": 4}


def test_a_peak_without_time_for_all_is_measured_again(here, steps, tmp_path, monkeypatch):
    cut = synthetic_ceilings(device="cpu").model_copy(update={"missing": {"storage": NO_TIME}})
    monkeypatch.setattr(first_run, "measure_peaks", lambda *_: [(cut, tmp_path / "cpu-1.json")])
    root = write_pair(tmp_path / "root", optimized=WRONG)
    assert "--minutes left no time for storage" in here().stdout
    assert ends(root)[0]["peak"] == ExitCode.BROKEN
    assert "peak is done already" not in here("--resume").stdout


def test_ctrl_c_skips_the_rest_and_bundles_what_there_is(here, tmp_path, monkeypatch):
    def measure_peaks(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(first_run, "measure_peaks", measure_peaks)
    root = write_pair(tmp_path / "root")
    done = here()
    assert done.code == ExitCode.INTERRUPTED
    assert ends(root) == ({"doctor": 0, "peak": 130}, 130)
    assert bundle_in(root).keys() == {"first_run.json", "doctor.json"}
    assert "--resume --artifacts-dir" in done.stdout


def test_a_dry_run_does_nothing(here, steps, tmp_path):
    root = write_pair(tmp_path / "root")
    done = here("--dry-run", "--minutes", "30")
    assert done.code == 0, done
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["1/5", "2/5", "3/5", "4/5", "in", "5/5", "--minutes"]
    assert "not timed here yet" in done.stdout
    assert steps == []
    assert not (root / "artifacts").exists()


def test_only_accept_accepts_and_only_what_was_accepted_is_bundled(here, tmp_path, monkeypatch):
    """With rows of a GPU that is not here: two pairs were measured, and one was accepted."""
    root = write_pair(write_pair(tmp_path / "root"), "other:double")
    for name in ("demo", "other"):
        (root / name / "expectations_b200.json").write_text(f'"{name}"')
    monkeypatch.setattr(first_run, "describe_machine", lambda root: describe_machine(root).model_copy(update={"gpus": (GPU,)}))
    asked = []

    def run_suite(settings, watcher):
        asked.append((settings.command, settings.accept_regressions))
        folder = RunFolder.create(settings, "1")
        run = a_run(settings, run_id=folder.run_id)
        folder.write_run(run)
        for name in ("demo", "other"):
            verdict = a_verdict(VerdictKind.NEW, accepted=settings.accept_regressions and name == "demo")
            folder.write_pair(a_row(f"{name}:double", workload_file=f"{name}/workload_double.py", verdicts={"default": verdict}))
        return Outcome(run, folder.rows, folder.path, ExitCode.GOOD)

    monkeypatch.setattr(first_run, "run_suite", run_suite)
    assert here("--device", "auto", "--accept").code == 0
    assert asked == [("verify", False), ("run", True)]
    sent = {name: text for name, text in bundle_in(root).items() if name.startswith("expectations/")}
    assert sent == {"expectations/demo/expectations_b200.json": '"demo"'}
    assert here("--artifacts-dir", tmp_path / "plain").code == 0
    assert asked[2:] == [("verify", False), ("run", False)]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--targets", "demo:doubel"), "expected one like demo:double"),
        (("--resume",), "--resume: found no first run in .*; expected one, or its folder as --artifacts-dir"),
        (("--resume", "--artifacts-dir", "{tmp}/begun", "--accept"), "found accept True; expected False, with which .*begun was begun"),
        (("--artifacts-dir", "{tmp}/begun"), "begun is not empty; expected an absent or empty folder, or --resume"),
        (("--accept",), "--accept: found --device cpu; expected a GPU, as a CPU's time is never gated"),
        (("--accept", "--dry-run"), "--accept: found --device cpu; "),
        (("--minutes", "0"), "--minutes 0: "),
        (("--minutes", "nan"), "--minutes nan: "),
    ],
)
def test_what_cannot_be_done_is_one_sentence_before_the_first_step(here, steps, tmp_path, arguments, sentence):
    write_pair(tmp_path / "root")
    (tmp_path / "begun").mkdir()
    state = {"schema_version": 1, "targets": [], "device": "cpu", "accept": False, "started": "", "machine": {}}
    (tmp_path / "begun/first_run.json").write_text(json.dumps(state))
    done = here(*(each.format(tmp=tmp_path) for each in arguments))
    assert done.code == ExitCode.USAGE
    assert re.search(sentence, done.error), done.error
    assert steps == []


def needing(root, target, needs):
    """A pair whose optimized side needs something of a GPU."""
    return write_pair(root, target, optimized=OPTIMIZED.replace('"""\n', f'"""\n# needs: {needs}\n', 1))


def test_pairs_that_no_gpu_could_run_so_far_go_first(tmp_path, monkeypatch):
    root = write_pair(tmp_path / "root", "ch01:plain")
    for target, needs in {"ch02:old": "tma", "ch03:new": "tcgen05, tma", "ch04:engine": "decompression_engine"}.items():
        needing(root, target, needs)
    tree = discover(root)
    assert [each.pair.target for each in newer_than_measured(tree, (10, 0))] == ["ch03:new", "ch04:engine"]
    assert newer_than_measured(tree, (9, 0)) == []

    monkeypatch.setattr(first_run, "describe_machine", lambda root: describe_machine(root).model_copy(update={"gpus": (GPU,)}))
    order = ("ch03:new", "ch04:engine", "ch01", "ch02", "ch03", "ch04")
    assert first_run._machine_and_targets(Request(root))[1] == order
    assert first_run._machine_and_targets(Request(root, targets=("ch01", "ch03")))[1] == ("ch03:new", "ch01", "ch03")
    half = ("ch01", "ch03:baseline_new")
    assert first_run._machine_and_targets(Request(root, targets=half))[1] == half, "half of a pair stays half"
    assert first_run._machine_and_targets(Request(root, device=first_run.Device.CPU))[1] == ()


def test_a_document_of_the_bundle_is_that_of_a_run(here, tmp_path):
    root = write_pair(tmp_path / "root", optimized=WRONG)
    here()
    (path,) = root.glob("artifacts/first_run_*.zip")
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path / "got")
    run, (row,) = load(next((tmp_path / "got").iterdir()) / "run")
    assert (run.root, row.target) == (Path("ROOT"), "demo:double")
    assert description.private_paths(root)[str(root)] == "ROOT"

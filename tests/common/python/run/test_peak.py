"""peak measures this CPU, twice alike, and keeps what it found; a run holds its times against that."""

import json
import re
from contextlib import nullcontext
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest

from common.python.errors import BenchmarkError, ExitCode, Status
from common.python.machine import ceilings as machine_ceilings
from common.python.machine import description
from common.python.machine.ceilings import MachineCeilings, keep_ceilings, machine_key
from common.python.machine.description import describe_machine
from common.python.project import PROJECT_ROOT
from common.python.results import PairResult
from common.python.run import peak, suite
from common.python.run.suite import run_suite
from common.python.settings import Device, Settings
from tests.support.plans import H200, WITH_GPU
from tests.support.synthetic_ceilings import a_ceiling, synthetic_ceilings
from tools.cli.benchmark_cli import run_command_line

ALIKE = 1.5  # other work on the machine takes memory bandwidth, and now and then a measurement in a row of two
TRIES = 2

WORKLOAD = """
import torch
from common import Spec, Workload
WORKLOAD = Workload(
    inputs=lambda rand, n: {"x": rand.normal(n)},
    outputs=lambda n: {"y": Spec((n,), torch.float32)},
    reference=lambda x: x + 1,
    time_at={"n": 1024},
    cpu_at={"n": 65536},
    check_at=({"n": 3},),
    work=lambda n: {"dram_read": 4 * n, "dram_write": 4 * n, "tf32": n, "launch": 1},
    rtol=1e-6,
    atol=1e-6,
)
"""
SIDE = '''"""Adds one."""
def prepare(x):
    return lambda: x + 1
'''


@pytest.fixture(autouse=True)
def apart(tmp_path, monkeypatch, server):
    """Kept ceilings and the machine's lock of this test's own; the fork server is that of all tests."""
    monkeypatch.setattr(peak, "ForkServer", lambda _: nullcontext(server))
    monkeypatch.setattr(suite, "fork_server", lambda *_: nullcontext(server))
    monkeypatch.setattr(machine_ceilings, "MACHINES", tmp_path / "machines")
    monkeypatch.setattr(description.tempfile, "tempdir", str(tmp_path))
    return tmp_path / "machines"


@pytest.mark.slow
@pytest.mark.alone
def test_peak_measures_keeps_and_says_the_same(apart, server, capsys):
    assert run_command_line(["peak", "--device", "cpu"]) == ExitCode.GOOD
    out = capsys.readouterr().out
    ((path),) = apart.iterdir()
    kept = MachineCeilings.model_validate(json.loads(path.read_text()))
    found = {ceiling.name: ceiling for ceiling in kept.ceilings}

    assert path.name == f"{kept.machine}.json"
    assert found.keys() | kept.missing.keys() >= {"dram_read", "dram_write", "dram_copy", "fp32", "fp64", "storage_read"}
    assert out.splitlines()[0].startswith("[1/3] ")
    assert str(path) in out.splitlines()
    assert re.search(r"^dram_read +[\d.]+ GB/s ", out, re.MULTILINE)
    assert found["fp32"].value.estimate > found["fp64"].value.estimate > 1e8
    assert kept.seconds < 60

    assert any(_alike(found, topic, server) for topic in [("dram", "matrix")] * TRIES)


def _alike(before, topics, server):
    machine = describe_machine(PROJECT_ROOT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(peak.TOPICS, "cpu", {topic: peak.TOPICS["cpu"][topic] for topic in topics})
        again = peak._survey(server, machine, None, lambda line: None)
    ratios = {ceiling.name: ceiling.value.estimate / before[ceiling.name].value.estimate for ceiling in again.ceilings}
    return all(1 / ALIKE < ratio < ALIKE for ratio in ratios.values())


def test_json_is_the_documents_and_a_topic_that_fails_is_missing(monkeypatch, capsys):
    monkeypatch.setitem(peak.TOPICS, "cpu", {"astrology": "stars", "matrix": "products"})

    assert run_command_line(["peak", "--device", "cpu", "--json"]) == ExitCode.GOOD
    captured = capsys.readouterr()
    (document,) = json.loads(captured.out)
    found = MachineCeilings.model_validate(document)
    assert "KeyError" in found.missing["astrology"]
    assert {ceiling.name for ceiling in found.ceilings} == {"fp32", "fp64"}
    assert captured.err == ""


def test_nothing_measured_is_an_error(monkeypatch):
    monkeypatch.setitem(peak.TOPICS, "cpu", {"astrology": "stars"})

    with pytest.raises(BenchmarkError, match="expected at least one ceiling that can be measured"):
        peak.measure_peaks(Device.CPU, lambda line: None)


def test_no_topic_begins_after_the_deadline(monkeypatch):
    monkeypatch.setitem(peak.TOPICS, "cpu", {"matrix": "products", "storage": "storage"})
    told = []
    late = 100.0
    clock = iter([late - 2, late - 1, late + 1])  # the survey begins, then each topic would
    monkeypatch.setattr(peak, "time", SimpleNamespace(monotonic=lambda: next(clock, late + 2)))
    ((found, _),) = peak.measure_peaks(Device.CPU, told.append, late)
    assert {ceiling.name for ceiling in found.ceilings} == {"fp32", "fp64"}
    assert found.missing == {"storage": peak.NO_TIME}
    assert [line.partition("]")[0] for line in told] == ["[1/2"]


# --- peak --missing

GPUS = tuple(H200.model_copy(update={"index": index, "uuid": f"GPU-{index}"}) for index in range(2))


@pytest.fixture
def measured_again(monkeypatch):
    """What `--missing` keeps of two GPUs and which topics it asked of them, where something is kept already."""

    def of(changes=None, gpus=GPUS, missing=True):
        machine = WITH_GPU.model_copy(update={"gpus": gpus, "packages": {"torch": "2.0"}})
        limits = {name: getattr(H200, name) for name in ("driver", "sm_clock_max_mhz", "memory_clock_max_mhz", "power_limit_w")}
        fields = {"machine": "GPU-0", "torch": "2.0", "measured": ago(hours=1), "missing": {"fp4": "needs 10.0"}, **limits}
        own = [ceiling for ceiling in synthetic_ceilings().ceilings if not ceiling.name.startswith("peer")]
        keep_ceilings(synthetic_ceilings(**fields | {"ceilings": own} | (changes or {})))
        asked = []

        def ask(self, server, request):
            asked.append((request.index, request.topic))
            self.ceilings.append(a_ceiling({"peer": "peer_out"}.get(request.topic, request.topic), 1e9, "bytes/s"))

        monkeypatch.setattr(peak._Found, "ask", ask)
        monkeypatch.setattr(peak, "Telemetry", lambda _: nullcontext(SimpleNamespace(summary=lambda: SimpleNamespace(throttled=False))))
        monkeypatch.setattr(peak, "MACHINES", machine_ceilings.MACHINES)
        kept = peak._survey(None, machine, (0, gpus[0]), lambda line: None, missing=missing)
        return kept, [topic for _, topic in asked]

    return of


def ago(**time):
    return (datetime.now().astimezone() - timedelta(**time)).isoformat(timespec="seconds")


def test_missing_measures_what_lies_between_gpus_beside_what_is_kept(measured_again):
    kept, asked = measured_again({"missing": {"fp4": "needs 10.0", "peer_out": "needs 2 GPUs; this machine has 1"}})

    assert asked == ["peer"]
    found = {ceiling.name: ceiling.value.estimate for ceiling in kept.ceilings}
    assert found["peer_out"] == 1e9
    assert found["dram_read"] == 4e12  # as it was
    assert kept.missing == {"fp4": "needs 10.0"}  # what this GPU does not have is not asked again
    assert kept.measured <= ago(hours=1)
    assert kept.notes[-1].endswith(": peer")


def test_missing_measures_a_topic_again_that_failed(measured_again):
    kept, asked = measured_again({"missing": {"matrix": peak.NO_TIME}}, gpus=GPUS[:1])

    assert asked == ["matrix"]
    assert kept.missing == {}


def test_missing_measures_nothing_where_nothing_is(measured_again):
    kept, asked = measured_again(gpus=GPUS[:1])

    assert asked == []
    assert "dram_read" in {ceiling.name for ceiling in kept.ceilings}


@pytest.mark.parametrize(
    "changes",
    [{"measured": ago(hours=13)}, {"measured": ago(hours=-1)}, {"driver": "older"}, {"torch": "1.9"}, {"power_limit_w": 1.0}],
)
def test_missing_measures_everything_where_what_is_kept_is_old_or_of_another_state(measured_again, changes):
    _, asked = measured_again(changes)

    assert asked == list(peak.TOPICS["cuda"])


def test_without_missing_everything_is_measured(measured_again):
    _, asked = measured_again(missing=False)

    assert asked == list(peak.TOPICS["cuda"])


# --- all GPUs together


def test_ranks_measure_an_all_reduce_together(server, tmp_path):
    (found,), why = peak.ask_ranks(server, "cpu", 2, tmp_path)

    assert why == ""
    assert (found.name, found.unit) == ("all_reduce", "bytes/s")
    assert found.how.startswith("1.00 MiB a rank, 2 ranks, bus bandwidth")
    assert 1e6 < found.value.estimate < 1e12


@pytest.mark.parametrize(("missing", "asked"), [(False, True), (True, False)])
def test_each_gpu_keeps_what_all_found_together(monkeypatch, apart, missing, asked):
    each = [synthetic_ceilings(machine=gpu.uuid, missing={"all_reduce": "needs 2 GPUs"}) for gpu in GPUS]
    if not asked:
        each = [one.model_copy(update={"ceilings": (*one.ceilings, a_ceiling("all_reduce", 3e9, "bytes/s"))}) for one in each]
    monkeypatch.setattr(peak, "describe_machine", lambda _: WITH_GPU.model_copy(update={"gpus": GPUS}))
    monkeypatch.setattr(peak, "fitness", lambda *_: ())
    monkeypatch.setattr(peak, "MACHINES", apart)
    monkeypatch.setattr(peak, "_chosen", lambda *_: "cuda")
    monkeypatch.setattr(peak, "_survey", lambda server, machine, place, *_, missing: each[place[0]])
    folders = []

    def ask(server, device, ranks, folder):
        folders.append(folder)
        return (a_ceiling("all_reduce", ranks * 1e9, "bytes/s"),), ""

    monkeypatch.setattr(peak, "ask_ranks", ask)

    found = peak.measure_peaks(Device.CUDA, lambda line: None, missing=missing)
    rates = [{c.name: c.value.estimate for c in ceilings.ceilings}["all_reduce"] for ceilings, _ in found]
    assert rates == [2e9 if asked else 3e9] * 2
    assert not asked or all(ceilings.missing == {} for ceilings, _ in found)
    assert [folder.parent for folder in folders] == [Path("/dev/shm")] * asked  # the driver maps no page of a file on a disk
    assert sorted(path.name for path in apart.glob("*.json")) == ["GPU-0.json", "GPU-1.json"]


def test_an_all_reduce_that_failed_says_why(tmp_path, server, monkeypatch):
    monkeypatch.setattr(peak, "_TOPIC_S", 0.0)
    found, why = peak.ask_ranks(server, "cpu", 2, tmp_path)
    assert (found, "survey took more than 0 s" in why) == ((), True)


def test_an_unknown_device_is_named(capsys):
    assert run_command_line(["peak", "--device", "gpu"]) == ExitCode.USAGE
    assert capsys.readouterr().err == "error: --device gpu: expected one of auto, cuda, cpu\n"


# --- a run against kept ceilings


class Watcher:
    def __init__(self):
        self.notes = []

    def note(self, sentence):
        self.notes.append(sentence)

    def started(self, target, index, total):
        pass

    def phase(self, target, text):
        pass

    def finished(self, row: PairResult):
        pass


def run_of_a_pair(tmp_path):
    chapter = tmp_path / "root" / "ch01"
    chapter.mkdir(parents=True)
    (chapter / "workload_add.py").write_text(f'"""Adds one."""\n{WORKLOAD}')
    for side in ("baseline", "optimized"):
        (chapter / f"{side}_add.py").write_text(SIDE)
    watcher = Watcher()
    settings = Settings(root=tmp_path / "root", device=Device.CPU, iterations=2, artifacts_dir=tmp_path / "run")
    return run_suite(settings, watcher), watcher


def keep_for_this_cpu(rate):
    """A core that reads, copies and writes at `rate` bytes a second and has no cache."""
    machine = describe_machine(PROJECT_ROOT)
    ceilings = tuple(a_ceiling(f"dram_{kind}", rate, "bytes/s") for kind in ("read", "copy", "write"))
    keep_ceilings(synthetic_ceilings(machine=machine_key(machine, None), name=machine.cpu, device="cpu", cache_bytes=0, ceilings=ceilings))


def test_a_time_below_the_floor_of_the_kept_ceilings_is_implausible(tmp_path):
    keep_for_this_cpu(1e3)  # 512 KiB take 524 s
    outcome, _ = run_of_a_pair(tmp_path)
    (row,) = outcome.rows

    assert outcome.exit_code is ExitCode.WRONG
    assert row.status is Status.IMPLAUSIBLE
    assert not row.timings
    assert re.fullmatch(
        r"baseline_add\.py: found [\d.]+ [µm]s for 524 kB of dram, which is .* [MG]B/s; this CPU's measured ceiling is 1\.00 kB/s; .*",
        row.reason,
    )


def test_a_plausible_time_has_a_share_and_the_run_keeps_the_ceilings(tmp_path):
    keep_for_this_cpu(1e15)
    outcome, watcher = run_of_a_pair(tmp_path)
    (row,) = outcome.rows
    (timing,) = row.timings.values()

    assert outcome.exit_code is ExitCode.GOOD
    assert timing.shares.keys() == {"baseline", "optimized"}
    for side, share in timing.shares.items():
        assert share.key == "dram"
        assert share.share == pytest.approx(524_288 / 1e15 * 1e9 / timing.time_ns[side].estimate)
    assert timing.notes == ("no share of tf32: it is not among this machine's ceilings",)
    kept = MachineCeilings.model_validate(outcome.run.ceilings["cpu"])
    assert {ceiling.value.estimate for ceiling in kept.ceilings} == {1e15}
    assert json.loads((outcome.folder / "run.json").read_text())["ceilings"]["cpu"]["machine"] == kept.machine
    assert not any("ceilings" in note for note in watcher.notes)


def test_without_kept_ceilings_there_is_a_note_and_no_share(tmp_path):
    outcome, watcher = run_of_a_pair(tmp_path)

    assert outcome.exit_code is ExitCode.GOOD
    assert outcome.rows[0].timings["cpu"].shares == {}
    assert outcome.run.ceilings == {}
    assert [note for note in watcher.notes if "benchmark_cli peak" in note]

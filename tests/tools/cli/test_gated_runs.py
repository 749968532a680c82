"""Whole runs on the command line, but for the timing itself: synthetic units stand for what an H200 would have measured.

What is replaced: the machine (it has a GPU), the choice of the device, `Measurement.run`, and the start of the fork server, which is
shared. The pairs, their verification in real processes, the files and the exit codes are the real ones.
"""

from __future__ import annotations

import json
import re
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from common.python import planning, suite
from common.python.environment import Gpu, child_environment, describe_machine
from common.python.errors import ExitCode
from common.python.expectations import keep_expectations, read_expectations
from common.python.isolation import ForkServer
from common.python.measurement import Measured, Measurement
from common.python.project import PROJECT_ROOT
from common.python.results import StopReason
from tests.common.python.factories import a_recorded_timing, an_expectation, recorded_ladder, recorded_units
from tests.common.python.profiled import put_on_path
from tools.cli.benchmark_cli import run_command_line

WORKLOAD = '''"""One is added."""

import torch

from common import Spec, Workload


WORKLOAD = Workload(
    inputs=lambda rand, n: {"x": rand.normal(n)},
    outputs=lambda n: {"y": Spec((n,), torch.float32)},
    reference=lambda x: x + 1,
    work=lambda n: {"dram_read": 4 * n, "dram_write": 4 * n},
    time_at={"n": 1000},
    cpu_at={"n": 100},
    check_at=({"n": 3},),
    rtol=1e-6,
    atol=0.0,
    clock="host",
    place="host",
)
'''
SIDE = '"""{}: x + {}."""\n\n\ndef prepare(x):\n    return lambda: x + {}\n'
H200 = Gpu(index=0, name="NVIDIA H200", uuid="GPU-of-a-test", capability=(9, 0), memory_bytes=141 << 30, driver="580.1")


@pytest.fixture(scope="module")
def server():
    with ForkServer(child_environment(PROJECT_ROOT, "cpu")) as shared:
        yield shared


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "pairs" / "ch07"
    folder.mkdir(parents=True)
    (folder / "workload_add.py").write_text(WORKLOAD)
    (folder / "baseline_add.py").write_text(SIDE.format("Baseline", 1, 1))
    (folder / "optimized_add.py").write_text(SIDE.format("Optimized", "1.0", "1.0"))
    return folder.parent


class Bench:
    """A machine whose measurements are what a test says, in turn; the last of them again and again."""

    def __init__(self, root, runs, monkeypatch, capsys):
        self.root, self.runs, self.capsys = root, runs, capsys
        self.recorded: list[dict[str, Any]] = [{}]
        self.measured = 0
        self.orders: list[bool] = []
        self.machine = describe_machine(root).model_copy(update={"gpus": (H200,)})
        monkeypatch.setattr(suite, "describe_machine", lambda _: self.machine)
        monkeypatch.setattr(suite, "kept_ceilings", lambda *_: (None, "no ceilings"))
        monkeypatch.setattr(planning, "choose_device", lambda settings, machine, _: "cuda" if machine.gpus else "cpu")

        def run(measurement):
            return self.record(measurement)

        monkeypatch.setattr(Measurement, "run", run)

    def record(self, measurement):
        changes = dict(self.recorded[min(self.measured, len(self.recorded) - 1)])
        self.measured += 1
        self.orders.append(measurement._bench.reversed)
        units = changes.pop("units", recorded_units(2.0, count=12, seed=7))
        plan = measurement._plan
        device = "cuda" if self.machine.gpus else "cpu"
        conditions = {"shape": dict(measurement._shape), "clock": plan.clock, "device": device}
        return Measured(a_recorded_timing(units=units, **conditions | changes), {side: [] for side in plan.sides}, {}, {})

    def run(self, *arguments, measured=({},)):
        """Exit code of a run, with these measurements; its verdicts by target, and what it said, are kept."""
        self.recorded, self.measured, self.orders = list(measured), 0, []
        self.folder = self.runs / f"run{len(list(self.runs.iterdir()))}"
        code = run_command_line(["run", "--root", str(self.root), "--artifacts-dir", str(self.folder), *arguments])
        printed = self.capsys.readouterr()
        self.said, self.complained = printed.out, printed.err
        if (self.folder / "metrics.json").exists():
            self.rows = {row["target"]: row for row in json.loads((self.folder / "metrics.json").read_text())["rows"]}
        return code

    def verdict(self, target="ch07:add"):
        return self.rows[target]["verdicts"]["default"]["kind"]

    def expect(self):
        """Keep expectations of a speedup of 2, of synthetic units."""
        expected = an_expectation(2.0, shape={"n": 1000}, clock="host")
        keep_expectations(self.root / "ch07" / "expectations_h200.json", "add", {"default": expected})


@pytest.fixture
def bench(root, server, tmp_path, monkeypatch, capsys):
    (tmp_path / "runs").mkdir()
    monkeypatch.setattr(suite, "_server", lambda *_: nullcontext(server))
    monkeypatch.setattr(suite, "lock", lambda *_: nullcontext())
    return Bench(root, tmp_path / "runs", monkeypatch, capsys)


def slower(percent, seed=2):
    return {"units": recorded_units(2.0 * (1 - percent / 100), count=12, seed=seed)}


def test_three_percent_slower_twice_is_red_and_exits_2(bench):
    bench.expect()

    assert bench.run(measured=[slower(3), slower(3, seed=3)]) == ExitCode.REGRESSION
    assert bench.verdict() == "REGRESSED"
    assert bench.orders == [False, True]  # the second measurement turns the order round
    assert re.search(r"ch07:add: REGRESSED: speedup -2\.\d+ % .*, beyond 0.5 %; a second measurement agrees: speedup -2\.", bench.said)
    assert 'failure type="REGRESSED"' in (bench.folder / "junit.xml").read_text()
    assert json.loads((bench.folder / "ch07_add" / "second_metrics.json").read_text())["target"] == "ch07:add"


# A ladder, one of whose rungs is another pair's baseline.
LADDER_NS = {"baseline": 80_000.0, "once": 60_000.0, "baseline_other": 50_000.0, "optimized": 40_000.0}
RUNGS = ["rung once over baseline", "rung baseline_other over once", "rung optimized over baseline_other"]


def a_ladder(seed, **slower_by):
    times = {side: ns * (1 + slower_by.get(side, 0.0) / 100) for side, ns in LADDER_NS.items()}
    return {"units": recorded_ladder(times, count=24, deviation=0.002, seed=seed)}


@pytest.fixture
def climbing(bench, root):
    """A run of ch07:add with a ladder, with what is expected of it accepted."""
    workload = WORKLOAD.replace("Workload(\n", 'Workload(\n    ladder=("once", "ch08/baseline_other.py"),\n', 1)
    (root / "ch07" / "workload_add.py").write_text(workload)
    (root / "ch07" / "optimized_add_once.py").write_text(SIDE.format("Optimized", "1 * 1", "1 * 1"))
    (root / "ch08").mkdir()
    for file in ("workload", "baseline", "optimized"):
        (root / "ch08" / f"{file}_other.py").write_text(WORKLOAD if file == "workload" else SIDE.format(file, "(2 - 1)", "(2 - 1)"))

    def run(*flags, measured):
        return bench.run("--targets", "ch07:add", *flags, measured=measured)

    assert run("--accept-regressions", measured=[a_ladder(1)]) == ExitCode.GOOD
    return run


@pytest.mark.parametrize(("side", "rung"), [("once", RUNGS[0]), ("baseline_other", RUNGS[1]), ("optimized", RUNGS[2])])
def test_a_rung_that_is_three_percent_slower_is_red_by_its_name_and_exits_2(climbing, bench, side, rung):
    assert climbing(measured=[a_ladder(2, **{side: 3}), a_ladder(3, **{side: 3})]) == ExitCode.REGRESSION
    verdict = bench.rows["ch07:add"]["verdicts"]["default"]
    assert (verdict["kind"], verdict["confirmed"]) == ("REGRESSED", True)
    assert [name for name in RUNGS if verdict["changes"][name]["kind"] == "REGRESSED"] == [rung]
    assert re.search(
        rf"ch07:add: REGRESSED: (speedup -.*, )?{rung} -[23]\.\d* % .*, beyond 0.5 %.*; a second measurement agrees: ", bench.said
    )
    assert rung in (bench.folder / "junit.xml").read_text()


def test_a_rung_that_is_red_once_only_is_inconclusive(climbing, bench):
    assert climbing(measured=[a_ladder(2, once=3), a_ladder(3)]) == ExitCode.GOOD
    assert bench.verdict() == "INCONCLUSIVE"


def test_a_ladder_that_is_as_it_was_is_the_same_at_every_rung_and_shown(climbing, bench):
    assert climbing(measured=[a_ladder(2)]) == ExitCode.GOOD
    verdict = bench.rows["ch07:add"]["verdicts"]["default"]
    assert list(verdict["changes"]) == ["speedup", *RUNGS]
    assert verdict["sentence"].endswith("within 0.5 %, and so is every rung")
    rungs = bench.rows["ch07:add"]["timings"]["default"]["rungs"]
    assert list(rungs) == ["once", "baseline_other", "optimized"]
    assert [rung["estimate"] for rung in rungs.values()] == pytest.approx([80 / 60, 60 / 50, 50 / 40], rel=0.003)
    (_, *lines) = [line for line in bench.said.splitlines() if "over the rung before" in line or "└" in line]
    assert [re.search(r"└ (\w+).* (\S+x) ", line).groups() for line in lines] == [("once", "1.334x"), ("baseline_other", "1.200x")]


def test_a_new_rung_is_not_gated_until_it_is_accepted(climbing, bench, root):
    workload = root / "ch07" / "workload_add.py"
    workload.write_text(workload.read_text().replace('"once", "ch08/baseline_other.py"', '"ch08/baseline_other.py",'))
    without = {side: ns for side, ns in LADDER_NS.items() if side != "once"}
    measured = [{"units": recorded_ladder(without, count=24, deviation=0.002, seed=2)}]

    assert climbing(measured=measured) == ExitCode.GOOD
    assert list(bench.rows["ch07:add"]["verdicts"]["default"]["changes"]) == ["speedup", RUNGS[2]]
    assert "; nothing is expected of rung baseline_other over baseline yet" in bench.said
    assert climbing("--accept-regressions", measured=measured) == ExitCode.GOOD
    assert climbing(measured=measured) == ExitCode.GOOD
    assert "nothing is expected" not in bench.said


def test_a_rung_that_is_too_uncertain_is_left_out_of_what_is_accepted(climbing, bench, root):
    steady = recorded_ladder(LADDER_NS, count=24, deviation=0.002, seed=4)
    wild = recorded_ladder({"once": 60_000.0}, count=24, deviation=0.02, seed=5)
    units = tuple(unit.model_copy(update={"blocks": unit.blocks | other.blocks}) for unit, other in zip(steady, wild, strict=True))

    assert climbing("--accept-regressions", measured=[{"units": units}]) == ExitCode.GOOD
    kept = read_expectations(root / "ch07" / "expectations_h200.json").pairs["add"]["default"]
    assert list(kept.rungs) == ["optimized"]
    assert "rung once over baseline is not accepted: found a half-width of " in bench.said
    assert climbing(measured=[a_ladder(2)]) == ExitCode.GOOD
    assert f"; nothing is expected of {RUNGS[0]}, {RUNGS[1]} yet" in bench.said


@pytest.fixture
def profilers(bench, root, tmp_path, monkeypatch):
    """Stand-ins for nsys and ncu, for rows as if they had run on the GPU; with what a step of the optimized side moved when accepted."""
    put_on_path(monkeypatch, "nsys", "ncu", folder=tmp_path / "tools")
    explained = suite._Suite._explained
    monkeypatch.setattr(suite._Suite, "_explained", lambda self, row, plan: explained(self, row, replace(plan, device="cuda")))
    expected = an_expectation(2.0, shape={"n": 1000}, clock="host")
    optimized = expected.sides["optimized"].model_copy(update={"counters": {"dram__bytes.sum": 2.0**28 / 1.03}})
    expected = expected.model_copy(update={"sides": expected.sides | {"optimized": optimized}})
    keep_expectations(root / "ch07" / "expectations_h200.json", "add", {"default": expected})


@pytest.mark.usefixtures("profilers")
def test_what_is_red_twice_is_profiled_by_itself_and_its_counters_are_ranked(bench):
    assert bench.run(measured=[slower(3), slower(3, seed=3)]) == ExitCode.REGRESSION
    row = bench.rows["ch07:add"]
    assert bench.measured == 2
    ranked = [note for note in row["notes"] if note.startswith("red, and by what ")]
    assert ranked[0].startswith("red, and by what optimized and baseline differ most: dram__bytes.sum 512 MiB → 256 MiB (0.50x), ")
    assert ranked[1:] == ["red, and by what optimized now and as it was accepted differ most: dram__bytes.sum 249 MiB → 256 MiB (1.03x)"]
    assert row["sides"]["optimized"]["profile"]["counters"]["dram__bytes.sum"] == 2.0**28
    assert "ncu_arguments.txt" in {path.name for path in (bench.folder / "ch07_add").iterdir()}
    assert ranked[0] in bench.said
    unprofiled = json.loads((bench.folder / "ch07_add" / "second_metrics.json").read_text())
    assert unprofiled["sides"]["optimized"]["profile"] is None


@pytest.mark.usefixtures("profilers")
@pytest.mark.parametrize("measured", [[slower(0)], [slower(3), slower(0)]])
def test_what_is_not_red_twice_is_not_profiled(bench, measured):
    assert bench.run(measured=measured) == ExitCode.GOOD
    assert not list(bench.folder.rglob("profile*"))


def test_red_once_only_is_inconclusive(bench):
    bench.expect()

    assert bench.run(measured=[slower(3), slower(0)]) == ExitCode.GOOD
    assert bench.verdict() == "INCONCLUSIVE"
    assert bench.run("--fail-on", "inconclusive", measured=[slower(3), slower(0)]) == ExitCode.INCONCLUSIVE


def test_what_is_accepted_is_the_same_when_it_is_measured_again_whatever_the_commit_is(bench, root):
    assert bench.run("--accept-regressions", measured=[{"units": recorded_units(2.0, count=24, seed=1)}]) == ExitCode.GOOD
    assert bench.verdict() == "NEW"
    kept = read_expectations(root / "ch07" / "expectations_h200.json").pairs["add"]["default"]
    assert len(kept.logs) == 24
    assert kept.provenance.gpu == "NVIDIA H200"
    commit = bench.machine.project.model_copy(update={"commit": "f" * 40})
    bench.machine = bench.machine.model_copy(update={"project": commit, "root": commit})

    assert bench.run("--require-expectations", measured=[slower(0)]) == ExitCode.GOOD
    assert bench.verdict() == "SAME"
    assert bench.measured == 1


def test_a_wider_gate_lets_more_pass(bench):
    bench.expect()

    assert bench.run("--gate", "5", measured=[slower(3)]) == ExitCode.GOOD
    assert bench.verdict() == "SAME"


def test_an_improvement_is_offered_and_never_written(bench, root):
    bench.expect()
    before = (root / "ch07" / "expectations_h200.json").read_text()

    assert bench.run(measured=[slower(-3)]) == ExitCode.GOOD
    assert bench.verdict() == "IMPROVED"
    assert "promote it with --accept-regressions?" in bench.said
    assert (root / "ch07" / "expectations_h200.json").read_text() == before


def test_a_regression_that_is_accepted_is_what_is_expected_from_then_on(bench):
    bench.expect()
    worse = [{"units": recorded_units(1.94, count=24, seed=5)}]

    assert bench.run("--accept-regressions", measured=worse) == ExitCode.GOOD
    assert (bench.verdict(), bench.measured) == ("REGRESSED", 1)
    assert bench.run(measured=[slower(3)]) == ExitCode.GOOD
    assert bench.verdict() == "SAME"


def test_another_model_is_new_and_not_gated(bench):
    bench.expect()
    bench.machine = bench.machine.model_copy(update={"gpus": (H200.model_copy(update={"name": "NVIDIA B200"}),)})

    assert bench.run(measured=[slower(30)]) == ExitCode.GOOD
    assert bench.verdict() == "NEW"
    assert "not gated: nothing is expected of it on B200 yet" in bench.said
    assert bench.run("--require-expectations", measured=[slower(30)]) == ExitCode.NOTHING_MEASURED


def test_a_workload_that_changed_its_shape_is_new(bench, root):
    bench.expect()
    (root / "ch07" / "workload_add.py").write_text(WORKLOAD.replace('"n": 1000', '"n": 2000'))

    assert bench.run(measured=[slower(30)]) == ExitCode.GOOD
    assert "not gated: shape n=2000 where n=1000 was accepted" in bench.said


@pytest.mark.parametrize("flag", [["--kwargs", "n=2000"], ["--iterations", "2"], ["--cold-start"], ["--sustained"], ["--sweep", "n=2000"]])
def test_what_asks_another_question_is_never_gated(bench, flag):
    bench.expect()

    assert bench.run(*flag, measured=[slower(30)]) == ExitCode.GOOD
    assert bench.rows["ch07:add"]["verdicts"] == {}


def test_a_half_is_never_gated(bench):
    bench.expect()
    half = recorded_units(2.0)
    alone = tuple(unit.model_copy(update={"order": ("optimized",), "blocks": {"optimized": unit.blocks["optimized"]}}) for unit in half)

    assert bench.run("--targets", "ch07:add_optimized", measured=[{"units": alone}]) == ExitCode.GOOD
    assert bench.rows["ch07:optimized_add"]["verdicts"] == {}


def test_a_wrong_answer_exits_4_before_it_is_timed(bench, root):
    bench.expect()
    (root / "ch07" / "optimized_add.py").write_text(SIDE.format("Optimized", 2, 2))

    assert bench.run(measured=[slower(30)]) == ExitCode.WRONG
    assert bench.measured == 0


def test_every_row_skipped_exits_5(bench, root):
    (root / "ch07" / "workload_add.py").write_text(WORKLOAD.replace("import torch\n", "import torch\n\n# needs: tcgen05\n", 1))

    assert bench.run() == ExitCode.NOTHING_MEASURED
    assert bench.rows["ch07:add"]["status"] == "SKIPPED"


def test_a_throttled_row_passes_says_nothing_and_exits_6(bench):
    bench.expect()

    assert bench.run(measured=[slower(30) | {"stop_reason": StopReason.THROTTLED}]) == ExitCode.UNFIT
    assert (bench.rows["ch07:add"]["status"], bench.verdict()) == ("PASSED", "INCONCLUSIVE")


def test_a_cpu_is_never_gated_and_never_accepted(bench, root):
    bench.machine = bench.machine.model_copy(update={"gpus": ()})

    assert bench.run("--accept-regressions", measured=[{"units": recorded_units(2.0, count=24)}]) == ExitCode.GOOD
    assert "cpu is not accepted: a CPU's time is never gated" in bench.said
    assert not list(root.rglob("expectations_*.json"))


@pytest.mark.parametrize(
    ("units", "why_not"),
    [
        (recorded_units(2.0, count=8), "found 8 units; expected at least 10"),
        (recorded_units(2.0, count=12, deviation=0.02), "%; expected at most 0.25 %, half of the band"),
    ],
)
def test_what_is_too_uncertain_is_not_accepted(bench, root, units, why_not):
    assert bench.run("--accept-regressions", measured=[{"units": units}]) == ExitCode.GOOD
    assert "default is not accepted: found " in bench.said
    assert why_not in bench.said
    assert not list(root.rglob("expectations_*.json"))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "expected a whole JSON document"),
        ('{"schema_version": 99}', "schema version 99; expected at most 1: a newer release wrote it"),
        ('{"schema_version": 1, "gpu": "b200"}', "found gpu b200; expected h200, as in its name"),
    ],
)
def test_expectations_that_cannot_be_read_end_the_run_before_it_begins(bench, root, text, complaint):
    (root / "ch07" / "expectations_h200.json").write_text(text)

    assert bench.run() == ExitCode.USAGE
    assert "expectations_h200.json" in bench.complained
    assert complaint in bench.complained
    assert not bench.folder.exists()

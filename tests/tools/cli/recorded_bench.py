"""Whole runs on the command line, but for the timing itself: synthetic units stand for what an H200 would have measured.

What is replaced: the machine (it has a GPU), the choice of the device, `Measurement.run`, and the start of the fork server, which is
shared. The pairs, their verification in real processes, the files and the exit codes are the real ones.
"""

from __future__ import annotations

import json
from typing import Any

from common.python.gate.expectations import keep_expectations
from common.python.machine.description import Gpu, describe_machine
from common.python.measure.process_pairs import Measured, Measurement
from common.python.run import suite
from common.python.session import planning
from tests.support.factories import a_recorded_timing, an_expectation, recorded_units
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
        self.orders.append(measurement._session.reversed)
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

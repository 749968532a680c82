"""The walk-through shows four numbers wrong and right, and gives no time to a wrong answer."""

import re
from dataclasses import replace

import pytest
import torch

from common.python.child.sides.loader import import_file, load_workload
from tests.support.teeth import ROOT


@pytest.fixture
def demo(monkeypatch):
    """The script at a small shape, with few calls."""
    module = import_file(ROOT / "ch01/performance_basics.py")
    small = {"batch": 33, "width": 257}
    monkeypatch.setattr(module, "load_workload", lambda path: replace(load_workload(path), cpu_at=small, time_at=small))
    for name, value in {"CALLS": 3, "UNITS": 3, "COPIES": 8, "WARM_S": 0.2}.items():
        monkeypatch.setattr(module, name, value)
    threads = torch.get_num_threads()
    yield module
    torch.set_num_threads(threads)


def test_four_numbers_are_shown_wrong_and_right(demo, capsys):
    assert demo.main() == 0
    printed = capsys.readouterr().out
    assert re.findall(r"^(?:[A-Z][\w-]+(?: \w+)?)$", printed, re.MULTILINE) == ["Warm-up", "Synchronization", "Cold cache", "Noise"]
    assert len(re.findall(r"^  (wrong|right)  ", printed, re.MULTILINE)) == 8
    assert len(re.findall(r"^  [\d.]+x: \w", printed, re.MULTILINE)) == 3
    assert re.search(r"interval: [\d.]+x \[[\d.]+, [\d.]+\]", printed)


def test_the_buffers_of_a_cold_block_take_turns(demo, tmp_path):
    basics = demo.Basics(torch.device("cpu"), tmp_path)
    called = []
    copies = []
    for number in range(4):
        inputs = demo.Inputs(demo.SUM, {"values": 8}, number, basics.device, tmp_path)
        copies.append((inputs, lambda number=number, x=inputs.values["x"]: called.append(number) or x.sum()))
    found = demo.block(basics.sampler(demo.SUM, copies, 1), 8)
    assert len(found) == 8
    assert sorted(called[-8:]) == [0, 0, 1, 1, 2, 2, 3, 3]


def test_a_wrong_answer_ends_it_in_one_sentence(demo, monkeypatch, capsys):
    side = demo.load_side

    class Wrong:
        """The side, with an answer that is off."""

        def __init__(self, *arguments):
            self.side = side(*arguments)

        def prepare(self, *arguments):
            step = self.side.prepare(*arguments)
            return lambda: step() * 1.01

    monkeypatch.setattr(demo, "load_side", Wrong)
    assert demo.main() == 1
    found = capsys.readouterr()
    assert found.err == "error: baseline_performance.py: found an answer outside the workload's tolerance; expected a right one\n"
    assert "wrong" not in found.out

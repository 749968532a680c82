"""Rounds of A/A trials, as many as asked for or as patience allows, become the noise floor that the gate reads."""

import pytest

from common.python.errors import ExitCode, UnfitEnvironment
from common.python.gate.noise_floor import StepClass, noise_path, read_noise
from common.python.run import noise_trials
from common.python.run.interruption import Interrupted
from common.python.settings import Settings
from tests.support.factories import a_recorded_timing, a_row
from tests.support.plans import WITH_GPU, WITHOUT_GPU
from tools.cli.benchmark_cli import run_command_line


@pytest.fixture
def rounds(monkeypatch, tmp_path):
    """Stands for whole runs of synthetic timings, each round of which takes `seconds` by the clock."""

    class Rounds:
        count, seconds, now, machine = 0, 60.0, 0.0, WITH_GPU

        def run(self, settings, targets, watcher):
            self.count += 1
            self.now += self.seconds
            return (a_row("noise:copy", timings={"64 MB": a_recorded_timing(seed=self.count), "16 kB": a_recorded_timing(4e3)}),)

    rounds = Rounds()
    monkeypatch.setattr(noise_trials, "run_trial", rounds.run)
    monkeypatch.setattr(noise_trials, "describe_machine", lambda _: rounds.machine)
    monkeypatch.setattr(noise_trials.time, "monotonic", lambda: rounds.now)
    monkeypatch.setattr(noise_trials, "noise_path", lambda key: noise_path(key, tmp_path))
    return rounds


def test_what_the_rounds_show_is_kept_under_the_gpus_name(rounds, tmp_path):
    floor = noise_trials.measure_noise(Settings(), 3, None)
    kept = read_noise(noise_path(WITH_GPU.gpus[0].uuid, tmp_path))

    assert rounds.count == 3
    assert (floor.device, floor.driver) == ("NVIDIA H200", "580.1")
    assert {step: len(each.trials) for step, each in kept.floors.items()} == {StepClass.SHORT: 3, StepClass.LONG: 3}


@pytest.mark.parametrize(("seconds", "count"), [(200.0, 1), (60.0, 2), (40.0, 3)])
def test_without_a_number_a_further_round_begins_only_if_it_will_be_done_in_time(rounds, seconds, count):
    rounds.seconds = seconds
    noise_trials.measure_noise(Settings(), None, None)

    assert rounds.count == count


def test_a_cpu_has_a_floor_of_its_own(rounds, tmp_path):
    rounds.machine = WITHOUT_GPU
    floor = noise_trials.measure_noise(Settings(), 1, None)

    assert (floor.device, floor.driver) == ("c", "")
    assert [path.name.startswith("cpu-") for path in tmp_path.glob("*.noise.json")] == [True]


@pytest.mark.parametrize(
    ("code", "raised"),
    [
        (ExitCode.UNFIT, UnfitEnvironment),
        (ExitCode.INTERRUPTED, KeyboardInterrupt),
        (ExitCode.TERMINATED, Interrupted),
        (ExitCode.HUNG_UP, Interrupted),
    ],
)
def test_a_trial_that_does_not_count_ends_them_all(monkeypatch, code, raised):
    class Outcome:
        exit_code = code
        rows = ()

    monkeypatch.setattr(noise_trials, "run_suite", lambda settings, watcher: Outcome)
    with pytest.raises(raised):
        noise_trials.run_trial(Settings(), ["noise:copy"], None)


def test_a_device_that_is_none_is_one_sentence(capsys):
    assert run_command_line(["noise", "--device", "gpu"]) == ExitCode.USAGE
    assert capsys.readouterr().err == "error: --device gpu: expected one of auto, cuda, cpu\n"


def test_the_command_says_what_a_gate_here_can_see(rounds, capsys):
    assert run_command_line(["noise", "--trials", "2"]) == ExitCode.GOOD
    said = capsys.readouterr().out.splitlines()

    assert [line.partition(" sees changes of ")[0] for line in said] == [
        "under 10 µs: on this machine a gate of 0.5 %",
        "30 µs and more: on this machine a gate of 0.5 %",
    ]
    assert rounds.count == 2

"""The bars count what the trials show, go on where they stopped, and their pairs differ by what is planted and nothing else."""

import time

import pytest

from common.python import trials
from common.python.artifacts import document_text, write_whole
from common.python.discovery import discover
from common.python.errors import BenchmarkError
from common.python.identity import same_code
from common.python.settings import Settings
from tests.commands import benchmark
from tests.common.python.factories import a_failure, a_recorded_timing, a_row, a_verdict
from tools.noise import bars
from tools.noise.bars import Bars, Trial, go_on, percentile, planted_pairs, table, together, trials_of


def a_trial(target="noise:copy", percent=0.1, verdict="SAME", shape="64 MB"):
    fields = {"logs": (percent / 100,) * 6, "time_ns": 36_700.0, "seconds": 5.0, "stop_reason": "decided"}
    return Trial(target=target, shape=shape, verdict=verdict, **fields)


def a_bars(*trials, **changes):
    return Bars(device="NVIDIA Test", driver="1", torch="2", commit="0" * 40, trials=trials, **changes)


def test_pairs_without_a_plant_are_the_same_code_and_planted_ones_are_not():
    pairs = discover(trials.NOISE_ROOT).pairs
    alike = {pair.target: same_code(pair.sides["baseline"], pair.sides["optimized"]) for pair in pairs}

    assert alike == {pair.target: not pair.name.endswith("_slower") for pair in pairs}
    assert {pair.target for pair in planted_pairs()} == {"noise:copy_slower", "noise:matmul_slower", "noise:softmax_slower"}
    assert set(trials.alike_targets()) == {target for target, is_alike in alike.items() if is_alike}


@pytest.mark.parametrize("n", [128 << 20, 16 << 20, 6 << 20, 4 << 10])
def test_a_planted_copy_moves_one_percent_more(n):
    from common.python.loader import load_workload

    class Shapes:
        def normal(self, count):
            return count

    workload = load_workload(trials.NOISE_ROOT / "workload_copy.py")
    assert workload.inputs(Shapes(), n=n)["x"] / n == pytest.approx(1.01, abs=3e-4)


def test_a_row_of_the_table_counts_a_callable():
    same = [a_trial(percent=percent) for percent in (0.1, -0.2, 0.3)]
    planted = [a_trial("noise:copy_slower", -1.0, verdict) for verdict in ("REGRESSED", "REGRESSED", "INCONCLUSIVE")]
    lines = table(a_bars(*same, *planted, do_bench={"copy 64 MB": (1.02, 0.99)})).splitlines()

    assert lines[2] == "| copy 64 MB | 36.7 µs | 0.30 % | 0.30 % | 2.00 % | 2 of 3 | 0 of 3 | 5.0 |"
    assert lines[-1] == "NVIDIA Test, driver 1, torch 2: 0 of 3 A/A trials red or green"


def test_red_and_green_between_the_same_code_are_counted():
    lines = table(a_bars(a_trial(), a_trial(verdict="REGRESSED"), a_trial(verdict="IMPROVED"), a_trial("noise:copy_slower"))).splitlines()

    assert "| 2 of 3 |" in lines[2]
    assert "2 of 3 A/A trials red or green" in lines[-1]


def test_the_percentile_is_a_value_that_was_seen():
    assert percentile(range(1, 41)) == 38
    assert percentile([3.0]) == 3.0


def test_a_timing_becomes_a_trial_with_its_raw_units():
    timing = a_recorded_timing(seconds=4.0)
    row = a_row("noise:copy", timings={"64 MB": timing}, verdicts={"64 MB": a_verdict("SAME")})
    (trial,) = trials_of([row])

    assert (trial.target, trial.shape, trial.verdict, trial.seconds, len(trial.logs)) == ("noise:copy", "64 MB", "SAME", 4.0, 8)
    assert trial.name == "copy 64 MB"
    assert not trial.is_planted


@pytest.fixture
def runs(monkeypatch):
    """Stands for whole runs: their targets, in order; each row has one shape."""
    targets = []

    def run_trial(settings, chosen, watcher):
        targets.append(tuple(chosen))
        return tuple(a_row(target, timings={"cpu": a_recorded_timing()}) for target in chosen)

    monkeypatch.setattr(bars, "run_trial", run_trial)
    return targets


def test_trials_go_on_where_they_stopped(runs, tmp_path):
    path = tmp_path / "bars.json"
    late = time.monotonic() + 60

    assert len(go_on(path, 1, late, Settings()).trials) == 6
    assert runs == [(f"noise:{name}", f"noise:{name}_slower") for name in ("copy", "matmul", "softmax")]
    assert len(go_on(path, 3, late, Settings()).trials) == 18
    assert len(runs) == 9
    go_on(path, 3, late, Settings())
    assert len(runs) == 9


def test_no_trial_is_begun_when_it_is_late(runs, tmp_path):
    write_whole(tmp_path / "bars.json", document_text(a_bars(a_trial())))

    assert len(go_on(tmp_path / "bars.json", 40, time.monotonic() - 1, Settings()).trials) == 1
    assert runs == []


def test_a_trial_that_fails_is_an_error_that_names_the_row(monkeypatch):
    class Outcome:
        exit_code = 4
        rows = (a_failure(target="noise:copy"),)

    monkeypatch.setattr(trials, "run_suite", lambda settings, watcher: Outcome)
    with pytest.raises(BenchmarkError, match=r"noise:copy: found WRONG_RESULT, .* expected every trial to pass"):
        trials.run_trial(Settings(), ["noise:copy"], None)


def test_every_pair_is_right_and_planted_ones_give_the_same_answer(tmp_path):
    done = benchmark("verify", "--root", trials.NOISE_ROOT, "--device", "cpu", "--artifacts-dir", tmp_path / "run", scratch=tmp_path)

    assert done.code == 0, done.stdout
    assert "9 targets: 9 PASSED" in done.stdout


def test_trials_of_several_gpus_of_a_model_make_one_table_and_those_of_another_make_none(tmp_path):
    first = a_bars(a_trial(percent=0.1), do_bench={"copy 64 MB": (1.01,)})
    path = tmp_path / "second.json"
    path.write_text(document_text(a_bars(a_trial(percent=0.3))))
    joined = together(first, [path])
    assert [round(trial.deviation_percent, 1) for trial in joined.trials] == [0.1, 0.3]
    assert joined.do_bench == first.do_bench
    path.write_text(document_text(a_bars(a_trial()).model_copy(update={"driver": "2"})))
    with pytest.raises(BenchmarkError, match=r"second.json: found trials of NVIDIA Test, 2, 2; expected NVIDIA Test, 1, 2"):
        together(first, [path])

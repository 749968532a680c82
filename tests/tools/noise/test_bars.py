"""The bars count what the trials show, go on where they stopped, and their pairs differ by what is planted and nothing else."""

import time
from pathlib import Path

import pytest

from common.python.errors import BenchmarkError
from common.python.pairs.discovery import discover
from common.python.pairs.sources import same_code
from common.python.run import noise_trials
from common.python.settings import Settings
from common.python.storage import document_text, write_whole
from tests.support.commands import benchmark_here
from tests.support.factories import a_failure, a_recorded_timing, a_row, a_verdict
from tools.noise import bars
from tools.noise.bar_figures import Bars, Trial, by_conditions, percentile, read_bars, table
from tools.noise.bars import CALLABLES, Quota, bar_pairs, go_on, main, trials_of

HERE = {"device": "NVIDIA Test", "uuid": "GPU-here", "driver": "1", "torch": "2", "gate": 0.5}


def a_trial(target="noise:copy", percent=0.1, verdict="SAME", shape="64 MB", **changes):
    fields = {"logs": (percent / 100,) * 6, "time_ns": 36_700.0, "seconds": 5.0, "stop_reason": "decided"}
    return Trial(**{"target": target, "shape": shape, "verdict": verdict, "date": "2026-01-02", "commit": "0" * 40} | fields | changes)


def a_bars(*trials, **changes):
    return Bars(**HERE | {"trials": trials} | changes)


def test_pairs_without_a_plant_are_the_same_code_and_planted_ones_are_not():
    pairs = discover(noise_trials.NOISE_ROOT).pairs
    alike = {pair.target: same_code(pair.sides["baseline"], pair.sides["optimized"]) for pair in pairs}

    assert alike == {pair.target: not pair.name.endswith("_slower") for pair in pairs}
    assert [pair.name for pair in bar_pairs()] == ["copy", "copy_slower", "matmul", "matmul_slower", "small_copy", "softmax"]
    assert set(noise_trials.alike_targets()) == {target for target, is_alike in alike.items() if is_alike}


@pytest.mark.parametrize("n", [128 << 20, 16 << 20, 6 << 20, 4 << 20])
def test_a_planted_copy_moves_one_percent_more(n):
    from common.python.child.sides.loader import load_workload

    class Shapes:
        def normal(self, count):
            return count

    workload = load_workload(noise_trials.NOISE_ROOT / "workload_copy.py")
    count = workload.inputs(Shapes(), n=n)["x"]
    assert count / n == pytest.approx(1.01, abs=3e-4)
    assert 4 * count % 4096 == 0  # else an H200 takes much more than 1 % longer


def test_one_percent_is_planted_in_each_callable_of_which_the_bar_asks_it():
    from common.python.child.sides.loader import load_workload

    timed = {pair.name: load_workload(pair.workload).timed_shapes for pair in bar_pairs()}
    assert sum(len(timed[name]) for name in CALLABLES) == 5
    assert sum(len(shapes) for name, shapes in timed.items() if name.endswith("_slower")) == 3


def test_a_row_of_the_table_counts_a_callable():
    same = [a_trial(percent=percent) for percent in (0.1, -0.2, 0.3)]
    planted = [a_trial("noise:copy_slower", -1.0, verdict) for verdict in ("REGRESSED", "REGRESSED", "INCONCLUSIVE")]
    lines = table([a_bars(*same, *planted, do_bench={"copy 64 MB": (1.02, 0.99)})]).splitlines()

    assert lines[2] == "| copy 64 MB | 36.7 µs | 0.30 % (bar 0.4 %) | 0.30 % | 2.00 % | 2 of 3 (bar 3) | 0 of 3 | 5.0 | 1 |"
    assert lines[-1] == (
        "NVIDIA Test, driver 1, torch 2, gate 0.5 %; 2026-01-02; commit 0000000000: 0 of 3 A/A trials red or green (bar 1 in 200)"
    )


def test_a_short_callable_has_a_wider_bar_and_none_for_the_plant():
    short = [a_trial(target, shape="16 kB", time_ns=3_500.0) for target in ("noise:copy", "noise:copy_slower")]
    assert "| 3.50 µs | 0.10 % (bar 1.5 %) | 0.10 % | not measured yet | 0 of 1 | 0 of 1 |" in table([a_bars(*short)])
    assert "| 3.50 µs | 0.10 % (bar 1.5 %) | 0.10 % | not measured yet | none planted | 0 of 1 |" in table([a_bars(short[0])])


def test_a_callable_that_do_bench_alone_has_measured_has_a_row():
    assert table([a_bars(do_bench={"copy 64 MB": (1.02,)})]).splitlines()[2] == (
        "| copy 64 MB | not measured yet | not measured yet | not measured yet | 2.00 % "
        "| not measured yet | not measured yet | not measured yet | 1 |"
    )


def test_the_planted_bar_is_38_of_40():
    planted = [a_trial("noise:copy_slower", -1.0, "REGRESSED")] * 40
    assert "| 40 of 40 (bar 38) |" in table([a_bars(a_trial(), *planted)])


def test_red_and_green_between_the_same_code_are_counted():
    same = [a_trial(), a_trial(verdict="REGRESSED"), a_trial(verdict="IMPROVED")]
    lines = table([a_bars(*same, a_trial("noise:copy_slower"))]).splitlines()

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


def until(count, *elsewhere, seconds=60.0):
    return Quota(bar_pairs(), count, time.monotonic() + seconds, elsewhere)


def test_trials_go_on_where_they_stopped(runs, tmp_path):
    path = tmp_path / "bars.json"

    first = go_on(path, a_bars(), until(1), Settings(), "1" * 40)
    assert read_bars(path) == first
    assert len(first.trials) == 6
    assert {trial.commit for trial in first.trials} == {"1" * 40}
    assert runs == [tuple(pair.target for pair in bar_pairs())]
    third = go_on(path, read_bars(path), until(3), Settings())
    assert (len(third.trials), len(runs)) == (18, 3)
    go_on(path, third, until(3), Settings())
    assert len(runs) == 3


def test_trials_on_other_gpus_count(runs, tmp_path):
    elsewhere = a_bars(*[a_trial(pair.target) for pair in bar_pairs() if pair.name != "softmax"] * 2)
    go_on(tmp_path / "bars.json", a_bars(), until(2, elsewhere), Settings())
    assert runs == [("noise:softmax",)] * 2


def test_no_trial_is_begun_when_it_is_late(runs, tmp_path):
    assert len(go_on(tmp_path / "bars.json", a_bars(a_trial()), until(40, seconds=-1), Settings()).trials) == 1
    assert runs == []
    assert not (tmp_path / "bars.json").exists()


def test_a_trial_that_fails_is_an_error_that_names_the_row(monkeypatch):
    class Outcome:
        exit_code = 4
        rows = (a_failure(target="noise:copy"),)

    monkeypatch.setattr(noise_trials, "run_suite", lambda settings, watcher: Outcome)
    with pytest.raises(BenchmarkError, match=r"noise:copy: found WRONG_RESULT, .* expected every trial to pass"):
        noise_trials.run_trial(Settings(), ["noise:copy"], None)


@pytest.mark.slow
def test_every_pair_is_right_and_planted_ones_give_the_same_answer(tmp_path):
    done = benchmark_here(
        "verify", "--root", noise_trials.NOISE_ROOT, "--device", "cpu", "--artifacts-dir", tmp_path / "run", scratch=tmp_path
    )

    assert done.code == 0, done.stdout
    assert "9 targets: 9 PASSED" in done.stdout


@pytest.fixture
def here(runs, tmp_path, monkeypatch):
    """The folder in which a person keeps trials, on a machine with one GPU."""
    monkeypatch.setattr(bars, "nothing_yet", lambda settings: (a_bars(), "2" * 40))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def kept(name, *trials, **changes):
    write_whole(Path(name), document_text(a_bars(*trials, **changes)))
    return name


def failure(capsys, *arguments):
    """The sentence with which a call ends that does nothing."""
    before = {path: path.read_bytes() for path in Path().rglob("*.json")}
    try:
        code = main([str(argument) for argument in arguments])
    except SystemExit as ended:
        code = ended.code
    printed = capsys.readouterr()
    assert (code, printed.out, printed.err[:7], printed.err.count("\n")) == (1, "", "error: ", 1)
    assert {path: path.read_bytes() for path in Path().rglob("*")} == before
    return printed.err[7:-1]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "the following arguments are required: file; expected what --help lists"),
        (["a.json", "--trials", "0"], "--trials: found 0; expected a whole number of at least 1"),
        (["a.json", "--trials", "2.5"], "--trials: found 2.5; expected a whole number of at least 1"),
        (["a.json", "--trials", "-1"], "--trials: found -1; expected a whole number of at least 1"),
        (["a.json", "--minutes", "0"], "--minutes: found 0; expected a finite number above 0"),
        (["a.json", "--minutes", "nan"], "--minutes: found nan; expected a finite number above 0"),
        (["a.json", "--minutes", "inf"], "--minutes: found inf; expected a finite number above 0"),
        (["a.json", "--minutes", "ten"], "--minutes: found ten; expected a finite number above 0"),
        (["a.json", "--do-bench", "0"], "--do-bench: found 0; expected a whole number of at least 1"),
        (["a.json", "--do-bench", "2", "--table"], "--table: not allowed with argument --do-bench; expected what --help lists"),
        (["a.json", "--device", "tpu"], "--device: found tpu; expected one of auto, cuda, cpu"),
        (["a.json", "--callable", "sort"], "--callable sort: found no such callable; expected one of copy, matmul, small_copy, softmax"),
        (["a.json", "--rounds", "3"], "unrecognized arguments: --rounds 3; expected what --help lists"),
        (["none/a.json"], "none/a.json: found no folder none; expected one that is there"),
        (["."], ".: found a folder; expected a file in which tools/noise/bars.py keeps trials"),
        (["a.json", "b.json"], "b.json: found no such file; expected a file in which tools/noise/bars.py keeps trials"),
        (["a.json", "--table"], "a.json: found no such file; expected a file in which tools/noise/bars.py keeps trials"),
        (["a.json", "./a.json"], "a.json: found it twice; expected each file once"),
    ],
)
def test_a_bad_argument_is_one_sentence_before_anything_runs(here, runs, capsys, arguments, sentence):
    assert failure(capsys, *arguments) == sentence
    assert runs == []


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ({"uuid": "GPU-there"}, "a.json: found trials of uuid GPU-there; expected those of uuid GPU-here, or another file for these"),
        ({"driver": "9"}, "a.json: found trials of driver 9; expected those of driver 1, or another file for these"),
        (
            {"torch": "3", "gate": 1.0},
            "a.json: found trials of torch 3, gate 1.0; expected those of torch 2, gate 0.5, or another file for these",
        ),
    ],
)
def test_a_file_of_another_gpu_or_of_other_settings_is_not_gone_on_with(here, runs, capsys, found, expected):
    kept("a.json", a_trial(), **found)
    assert failure(capsys, "a.json") == expected
    assert runs == []


@pytest.mark.parametrize("text", ["", "{}", '{"schema_version": 1, "device": "x"}', '{"schema_version": 1, "trials": [{}]}'])
def test_a_file_that_holds_no_trials_is_told_and_stays(here, runs, capsys, text):
    Path("a.json").write_text(text)
    assert failure(capsys, "a.json").startswith("a.json: ")
    kept("b.json")
    assert failure(capsys, "b.json", "a.json").startswith("a.json: ")
    assert runs == []


def test_do_bench_without_a_gpu_is_told(here, capsys, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert failure(capsys, "a.json", "--do-bench", 3) == "--do-bench 3: found no CUDA device that torch can use; expected one"


def test_a_later_call_goes_on_in_the_same_file_and_another_gpu_in_its_own(here, runs, capsys):
    assert main(["first.json", "--trials", "2", "--callable", "copy"]) == 0
    assert main(["first.json", "--trials", "3", "--callable", "copy"]) == 0
    assert len(runs) == 3
    there = read_bars(Path("first.json")).model_copy(update={"uuid": "GPU-there"})
    write_whole(Path("first.json"), document_text(there))
    capsys.readouterr()

    assert main(["second.json", "first.json", "--trials", "5", "--callable", "copy"]) == 0
    assert len(runs) == 5
    assert [read_bars(Path(name)).rounds_of("noise:copy_slower") for name in ("first.json", "second.json")] == [3, 2]
    assert "| 0 of 5 | 0.0 | 2 |" in capsys.readouterr().out
    assert {trial.commit for trial in read_bars(Path("second.json")).trials} == {"2" * 40}


def test_a_round_that_fails_leaves_those_before_it(here, monkeypatch, capsys):
    rounds = []

    def broken(settings, chosen, watcher):
        rounds.append(chosen)
        if len(rounds) == 2:
            raise BenchmarkError("noise:matmul: found CRASHED; expected every trial to pass")
        return tuple(a_row(target, timings={"cpu": a_recorded_timing()}) for target in chosen)

    monkeypatch.setattr(bars, "run_trial", broken)
    assert main(["a.json"]) == 1
    assert capsys.readouterr().err == "error: noise:matmul: found CRASHED; expected every trial to pass\n"
    assert [trial.target for trial in read_bars(Path("a.json")).trials] == rounds[0]


def test_ctrl_c_keeps_what_is_done(here, monkeypatch):
    def interrupted(settings, chosen, watcher):
        raise KeyboardInterrupt

    kept("a.json", a_trial())
    monkeypatch.setattr(bars, "run_trial", interrupted)
    assert main(["a.json"]) == 130
    assert len(read_bars(Path("a.json")).trials) == 1


def test_a_table_is_of_several_files_of_any_machine_s_and_each_row_says_of_how_many_gpus(here, runs, capsys):
    softmax = a_trial("noise:softmax", shape="4 MB", time_ns=7_600.0)
    kept("a.json", a_trial(percent=0.1), do_bench={"copy 64 MB": (1.01,)}, device="NVIDIA Other")
    kept("b.json", a_trial(percent=0.3), softmax, do_bench={"copy 64 MB": (1.03,)}, device="NVIDIA Other", uuid="GPU-there")
    kept("c.json", a_trial(percent=0.2, commit="3" * 40), device="NVIDIA Other")
    assert main(["a.json", "b.json", "c.json", "--table"]) == 0
    printed = capsys.readouterr().out.splitlines()

    copy, seven = printed[2:4]
    assert copy == "| copy 64 MB | 36.7 µs | 0.30 % (bar 0.4 %) | 0.30 % | 3.00 % | 0 of 0 (bar 0) | 0 of 3 | 5.0 | 2 |"
    assert seven.endswith("| 1 |")
    assert "commits 0000000000, 3333333333" in printed[-1]
    assert runs == []


def test_trials_of_another_model_or_driver_make_a_table_of_their_own(here, capsys):
    kept("a.json", a_trial())
    kept("b.json", a_trial(), driver="2")
    assert failure(capsys, "a.json", "b.json", "--table") == (
        "b.json: found trials of driver 2; expected those of driver 1, or another file for these"
    )
    files = [a_bars(), a_bars(driver="2"), a_bars(uuid="GPU-there")]
    assert by_conditions(files) == [[files[0], files[2]], [files[1]]]

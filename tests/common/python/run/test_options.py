"""Every flag is a field of Settings and every field a flag; what is typed arrives, and what cannot be meant is one sentence."""

import inspect
import sys

import pytest

from common.python.errors import BenchmarkError
from common.python.run.options import command_of, parse_kwargs, parse_sweep, repeat_command
from common.python.settings import Settings
from tests.support.factories import a_failure
from tools.cli import benchmark_cli
from tools.cli.benchmark_cli import run_command_line, spell_out_profile


@pytest.fixture
def settings_from(monkeypatch):
    """The Settings that a command line makes; nothing is run."""
    seen = []
    monkeypatch.setattr(benchmark_cli, "_suite", seen.append)

    def parsed(*arguments):
        assert run_command_line(list(arguments)) == 0
        return seen.pop()

    return parsed


def test_every_field_is_a_flag_of_run():
    parameters = inspect.signature(command_of("run", print, "")).parameters
    assert set(parameters) == set(Settings.model_fields) - {"command", "emulate"}  # which `verify` alone has


def test_verify_takes_no_flag_that_is_about_measuring():
    parameters = inspect.signature(command_of("verify", print, "")).parameters
    assert {"targets", "kwargs", "seed", "artifacts_dir", "resume", "json_output", "verbose"} <= set(parameters)
    assert not {"iterations", "warmup", "repeat", "profile", "gate", "cold_start", "sustained"} & set(parameters)


def test_without_flags_every_choice_is_the_default(settings_from):
    assert settings_from("run") == Settings()
    assert settings_from("verify") == Settings(command="verify")


FLAGS = {
    "--targets ch01 --targets ch07:x": {"targets": ("ch01", "ch07:x")},
    "-t ch01": {"targets": ("ch01",)},
    "--device cpu": {"device": "cpu"},
    "--kwargs n=3": {"kwargs": {"n": "3"}},
    "--dry-run": {"dry_run": True},
    "--iterations 7": {"iterations": 7},
    "--warmup 0": {"warmup": 0},
    "--repeat 2": {"repeat": 2},
    "--cold-start": {"cold_start": True},
    "--sustained": {"sustained": True},
    "--burst": {"sustained": False},
    "--sweep n=1,2": {"sweep": {"n": ("1", "2")}},
    "--changed-since main": {"changed_since": "main"},
    "--against HEAD~1": {"against": "HEAD~1"},
    "--timeout-multiplier 0.5": {"timeout_multiplier": 0.5},
    "--suite-timeout 60": {"suite_timeout": 60},
    "--profile roofline": {"profile": "roofline"},
    "--profile --ncu-metric-set deep_dive": {"profile": "minimal", "ncu_metric_set": "deep_dive"},
    "--sanitize memcheck": {"sanitize": ("memcheck",)},
    "--sanitize synccheck --sanitize memcheck --sanitize synccheck": {"sanitize": ("memcheck", "synccheck")},
    "--sanitize all": {"sanitize": ("memcheck", "racecheck", "initcheck", "synccheck")},
    "--sanitize initcheck --sanitize all": {"sanitize": ("memcheck", "racecheck", "initcheck", "synccheck")},
    "--llm-analysis": {"llm_analysis": True},
    "--llm-dry-run": {"llm_dry_run": True},
    "--llm-tokens 9000": {"llm_tokens": 9000},
    "--gate 1.5": {"gate": 1.5},
    "--accept-regressions": {"accept_regressions": True},
    "--accept": {"accept_regressions": True},
    "--wait 60": {"wait": 60},
    "--require-expectations": {"require_expectations": True},
    "--fail-on inconclusive": {"fail_on": "inconclusive"},
    "--artifacts-dir /tmp/x": {"artifacts_dir": "/tmp/x"},
    "--resume --artifacts-dir /tmp/x": {"resume": True, "artifacts_dir": "/tmp/x"},
    "--json": {"json_output": True},
    "--seed 7": {"seed": 7},
    "--ranks 4": {"ranks": 4},
    "--verbose": {"verbose": True},
    "-v": {"verbose": True},
}


@pytest.mark.parametrize("flag", FLAGS)
def test_a_flag_arrives_as_its_field(settings_from, flag):
    assert settings_from("run", *flag.split()) == Settings(**FLAGS[flag])


def test_verify_alone_emulates(settings_from):
    assert settings_from("verify", "--emulate") == Settings(command="verify", emulate=True)


def test_no_flag_is_untested():
    assert {field for fields in FLAGS.values() for field in fields} | {"root"} == set(Settings.model_fields) - {"command", "emulate"}


def test_a_root_is_taken_from_where_one_stands(settings_from, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert settings_from("run", "--root", "pairs").root == tmp_path / "pairs"


PROFILES = {
    "--profile": "minimal",
    "--profile --json": "minimal",
    "--profile -t ch01": "minimal",
    "--targets ch01 --profile": "minimal",
    "--profile --targets ch01": "minimal",
    "--profile=deep_dive": "deep_dive",
    "--profile deep_dive": "deep_dive",
    "--profile none --json": "none",
    "--profile roofline --targets ch01": "roofline",
}


@pytest.mark.parametrize("arguments", PROFILES)
def test_profile_may_stand_bare_anywhere(settings_from, arguments):
    assert settings_from("run", *arguments.split()).profile == PROFILES[arguments]


def test_no_profile_is_not_the_profile_none(settings_from):
    assert settings_from("run").profile is None
    assert settings_from("run", "--profile", "none").profile == "none"


@pytest.mark.parametrize(("arguments", "profiles"), [("", False), ("--profile none", False), ("--profile", True)])
def test_rows_are_profiled_only_where_a_profile_is_asked_for(settings_from, arguments, profiles):
    assert settings_from("run", *arguments.split()).profiles is profiles


@pytest.mark.parametrize("arguments", ["", "--profile none"])
def test_a_metric_set_needs_a_profile(capsys, arguments):
    assert run_command_line(["run", "--ncu-metric-set", "roofline", *arguments.split()]) == 1
    assert "--ncu-metric-set roofline: found no --profile; expected both" in capsys.readouterr().err


def test_only_a_bare_profile_is_spelt_out():
    others = ["--targets", "ch01", "--profile=roofline", "--profile", "none", "--ncu-metric-set", "minimal"]
    assert spell_out_profile(others) == others


REFUSED = {
    "--warmup -1": "--warmup -1: ",
    "--warmup=-1": "--warmup -1: ",
    "--warmup 1 --warmup -3": "--warmup -3: ",
    "--iterations 0": "--iterations 0: ",
    "--iterations many": "--iterations many: ",
    "--repeat 0": "--repeat 0: ",
    "--gate -1": "--gate -1: ",
    "--gate nan": "--gate nan: ",
    "--timeout-multiplier 0": "--timeout-multiplier 0: ",
    "--timeout-multiplier inf": "--timeout-multiplier inf: ",
    "--suite-timeout 0": "--suite-timeout 0: ",
    "--wait -1": "--wait -1: ",
    "--wait inf": "--wait inf: ",
    "--device tpu": "--device tpu: 'tpu' is not one of 'auto', 'cuda', 'cpu'",
    "--profile deep": "--profile deep: 'deep' is not one of 'none', 'minimal', 'roofline', 'deep_dive'",
    "--sanitize leaks": "--sanitize leaks: 'leaks' is not one of 'memcheck', 'racecheck', 'initcheck', 'synccheck', 'all'",
    "--sanitize memcheck --sanitize leaks": "--sanitize leaks: 'leaks' is not one of ",
    "--sanitize memcheck,racecheck": "--sanitize memcheck,racecheck: 'memcheck,racecheck' is not one of ",
    "--fail-on regressed": "--fail-on regressed: 'regressed' is not one of 'inconclusive'",
    "--kwargs n": "--kwargs: found 'n'; expected key=value pairs, each key once",
    "--kwargs n=": "--kwargs: found 'n='; expected key=value pairs",
    "--kwargs =3": "--kwargs: found '=3'; expected key=value pairs",
    "--kwargs 3=n": "--kwargs: found '3=n'; expected key=value pairs",
    "--sweep n": "--sweep: found 'n'; expected a shape entry and different values",
    "--sweep n=1,2 --kwargs n=3": "--sweep n=1,2 --kwargs n=3: found n in both; expected it in one",
    "--accept --kwargs n=3": "--accept --kwargs n=3: found both; expected one, as only what is measured as usual can be expected",
    "--accept --sweep n=1,2": "--accept --sweep n=1,2: found both; ",
    "--iterations 3 --accept": "--accept --iterations 3: found both; ",
    "--accept-regressions --cold-start": "--accept --cold-start: found both; ",
    "--accept --sustained": "--accept --sustained: found both; ",
    "--accept --against HEAD~1": "--accept --against HEAD~1: found both; ",
    "--cold-start --sustained": "--cold-start --sustained: found both; expected one, ",
    "--iterations 10000000000000000000000": "--iterations 10000000000000000000000: 10000000000000000000000 is not in the range ",
    "--warmup 10000000000000000000000": "--warmup 10000000000000000000000: ",
    "--seed -1": "--seed -1: ",
    "--target ch01": "No such option: --target; expected one like --targets",
    "--frobnicate-all": "No such option: --frobnicate-all; expected what --help lists",
    "--sweep n=1,1": "--sweep: found 'n=1,1'; expected a shape entry and different values",
    "--frobnicate": "No such option: --frobnicate",
    "extra": "Got unexpected extra argument",
    "--targets": "Option '--targets' requires an argument",
    "--json=yes": "Option '--json' does not take a value",
}


@pytest.mark.parametrize("arguments", REFUSED)
def test_what_cannot_be_meant_is_one_sentence_that_names_the_flag(settings_from, capsys, arguments):
    assert run_command_line(["run", *arguments.split()]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"error: {REFUSED[arguments]}")
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize("also", ["--warmup 3", "--burst", "--kwargs=", "--repeat 2", "--seed 1", "--gate 2", "--resume --artifacts-dir x"])
def test_what_is_measured_as_usual_can_be_accepted(settings_from, also):
    assert settings_from("run", "--accept", *also.split()).accept_regressions


def repeated(reason="wrong.py at n=3, input seed 5: output y", **choices):
    row = a_failure(target="ch07:x", reason=reason)
    return repeat_command(Settings(**choices), row, 123)


def test_a_failure_is_repeated_by_verify_with_its_seed_and_what_was_chosen():
    assert repeated() == "benchmark_cli verify --targets ch07:x --seed 123"
    assert repeated(targets=("ch07", "ch08"), iterations=3, verbose=True, artifacts_dir="/tmp/x", seed=123) == repeated()
    chosen = repeated(root="/tmp/a root", device="cpu", kwargs={"n": "3", "b": "1"}, sanitize=("memcheck", "racecheck"))
    assert chosen == (
        "benchmark_cli verify --targets ch07:x --seed 123 --root '/tmp/a root' --device cpu --kwargs 'n=3 b=1' "
        "--sanitize memcheck --sanitize racecheck"
    )


def test_a_failure_is_repeated_by_the_program_as_it_was_called(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/opt/venv/bin/benchmark_cli"])
    assert repeated() == "/opt/venv/bin/benchmark_cli verify --targets ch07:x --seed 123"


def test_a_failure_while_it_was_measured_is_repeated_by_the_run():
    reason = "workload_x.py: metrics: q: better='sideways'; expected higher or lower"
    row = a_failure(target="ch07:x", reason=reason)
    measured = row.model_copy(update={"phases": {"verify": 1.0, "measure": 0.1}})
    assert repeat_command(Settings(), measured, 123) == "benchmark_cli run --targets ch07:x --seed 123"
    assert repeat_command(Settings(), row, 123) == "benchmark_cli verify --targets ch07:x --seed 123"


def test_a_failure_in_a_timed_call_is_repeated_by_the_run_that_timed_it():
    timed = repeated("wrong.py at n=3, input seed 5, in a timed call: y", sustained=True, iterations=3, sweep={"n": ("1", "2")})
    assert timed == "benchmark_cli run --targets ch07:x --seed 123 --iterations 3 --sustained --sweep n=1,2"
    assert repeated(against="HEAD~1") == "benchmark_cli run --targets ch07:x --seed 123 --against 'HEAD~1'"


def test_kwargs_are_words_with_one_value_a_key():
    assert parse_kwargs(" rows=1024  causal=true mode=a=b ") == {"rows": "1024", "causal": "true", "mode": "a=b"}
    assert parse_kwargs("") == {}
    with pytest.raises(BenchmarkError, match="found 'n=2'; expected key=value pairs, each key once"):
        parse_kwargs("n=1 n=2")


def test_a_sweep_is_a_key_and_its_values():
    assert parse_sweep("n=1024, 2048") == {"n": ("1024", "2048")}
    assert parse_sweep("") == {}


@pytest.mark.parametrize("command", [["compare", "a", "b"], ["noise"]])
def test_a_gate_that_is_no_number_is_refused_by_every_command_that_has_one(command, capsys):
    assert run_command_line([*command, "--gate", "nan"]) == 1
    assert capsys.readouterr().err.startswith("error: --gate nan: ")

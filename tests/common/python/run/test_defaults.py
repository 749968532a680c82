"""Defaults of flags come from the nearest pyproject.toml, and what the command line says goes first."""

import pytest

from common.python.errors import BenchmarkError
from common.python.run.defaults import defaults_here
from common.python.settings import Settings
from tools.cli import benchmark_cli


def state(folder, text):
    (folder / "pyproject.toml").write_text(text)


def test_nobody_has_to_state_any(tmp_path):
    assert defaults_here(tmp_path) == {}
    state(tmp_path, "[tool.other]\nroot = 1\n")
    assert defaults_here(tmp_path) == {}


def test_flags_have_the_defaults_that_are_stated(tmp_path, monkeypatch):
    state(tmp_path, '[tool.benchmark_cli]\nroot = "kernels"\ngate = 2\ntargets = "ch07"\nfail-on = "inconclusive"\n')
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    seen = []
    monkeypatch.setattr(benchmark_cli, "_suite", seen.append)

    def settings(*arguments):
        assert benchmark_cli.run_command_line(list(arguments)) == 0
        return seen.pop()

    stated = {"root": tmp_path / "kernels", "targets": ("ch07",)}
    assert settings("run") == Settings(**stated, gate=2, fail_on="inconclusive")
    assert settings("run", "--gate", "1", "-t", "ch08").model_dump(include={"gate", "targets"}) == {"gate": 1, "targets": ("ch08",)}
    assert settings("verify") == Settings(command="verify", **stated)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[tool.benchmark_cli]\ngates = 1\n", "found 'gates' in .tool.benchmark_cli.; expected gate"),
        ("[tool.benchmark_cli]\naccept = true\n", "found 'accept' in .tool.benchmark_cli.; expected "),
        ("[tool.benchmark_cli]\nroot = 1\n", "found root = 1 in .tool.benchmark_cli.; expected a folder, in quotes"),
        ("[tool]\nbenchmark_cli = 3\n", "found tool.benchmark_cli = 3; expected a table"),
        ("[tool.benchmark_cli\n", "pyproject.toml: .*; expected TOML, of which"),
    ],
)
def test_what_cannot_be_meant_is_told_with_its_file(tmp_path, text, sentence):
    state(tmp_path, text)
    with pytest.raises(BenchmarkError, match=sentence):
        defaults_here(tmp_path)


def test_a_value_that_no_flag_takes_is_a_usage_error(tmp_path, monkeypatch, capsys):
    state(tmp_path, '[tool.benchmark_cli]\ndevice = "tpu"\n')
    monkeypatch.chdir(tmp_path)
    assert benchmark_cli.run_command_line(["run"]) == 1
    assert "'tpu' is not one of 'auto', 'cuda', 'cpu'" in capsys.readouterr().err

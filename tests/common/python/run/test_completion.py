"""Completion as bash and fish ask for it: by variables, of a command line that has no arguments."""

import sys

import pytest

from common.python.run.completion import joined
from tests.support.commands import write_pair
from tools.cli.benchmark_cli import run_command_line


@pytest.fixture
def complete(tmp_path, monkeypatch, capsys):
    """What is completed in a tree of three pairs in two folders."""
    for target in ("ch07:copy", "ch07:copy_wide", "ch10:matmul"):
        write_pair(tmp_path, target)

    def ask(shell, **variables):
        for name, value in {"_BENCHMARK_CLI_COMPLETE": f"complete_{shell}", **variables}.items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit):
            sys.exit(run_command_line([]))
        return capsys.readouterr().out.split("\n")[:-1]

    return ask


@pytest.fixture
def bash(complete, tmp_path):
    """bash's question about the last of `words`, as bash has taken them apart."""

    def ask(*words):
        rooted = ["benchmark_cli", words[0], "--root", str(tmp_path), *words[1:]]
        return complete("bash", COMP_WORDS="\n".join(rooted), COMP_CWORD=str(len(rooted) - 1))

    return ask


def test_commands_flags_and_their_values(complete):
    assert complete("bash", COMP_WORDS="benchmark_cli\nlist-t", COMP_CWORD="1") == ["list-targets", "list-techniques"]
    assert complete("bash", COMP_WORDS="benchmark_cli\nrun\n--tar", COMP_CWORD="2") == ["--targets"]
    assert complete("bash", COMP_WORDS="benchmark_cli\nrun\n--device\n", COMP_CWORD="3") == ["auto", "cuda", "cpu"]


def test_folders_then_the_pairs_of_one(bash):
    assert bash("run", "-t", "ch") == ["ch07", "ch10"]
    assert bash("run", "-t", "ch07") == ["ch07", "ch07:copy", "ch07:copy_wide"]
    assert bash("list-targets", "--chapter", "ch1") == ["ch10"]
    assert bash("run", "-t", "ch20") == [""]


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--targets", "ch07", ":", "copy_"),
        ("verify", "--targets", "=", "ch07", ":", "copy_"),
        ("run", "-t", "ch10", ":", "matmul", "-t", "ch07", ":", "copy_"),
        ("show", "ch07", ":", "copy_"),
    ],
)
def test_bash_gets_what_follows_the_colon(bash, words):
    assert bash(*words) == ["copy_wide"]


def test_a_word_that_ends_with_a_colon_is_one(bash):
    assert bash("show", "ch07", ":") == ["copy", "copy_wide"]
    assert joined(["a", "b", ":", ""], 3) == (["a", "b:", ""], 2)
    assert joined(["a", "b", ":", "c", "d"], 1) == (["a", "b:c", "d"], 1)


def test_other_shells_get_whole_names_with_their_ideas(complete, tmp_path):
    line = f"benchmark_cli show --root {tmp_path} ch10:"
    assert complete("fish", _TYPER_COMPLETE_FISH_ACTION="get-args", _TYPER_COMPLETE_ARGS=line) == ["ch10:matmul\ta product."]


def test_a_root_that_is_not_there_completes_nothing(complete):
    words = "benchmark_cli\nrun\n--root\nnowhere\n-t\nch"
    assert complete("bash", COMP_WORDS=words, COMP_CWORD="5") == [""]

"""A tool's bad argument is one sentence and exit code 1, and one whose reader has left ends silently, as SIGPIPE would end it."""

import os
import subprocess
import sys

import pytest

from common.python.command import Arguments, finite_above_0
from tests.support.commands import ROOT, ROOT_FIRST

READER_LEFT = 141
PROGRAM = "from common.python.command import exit_with\nfrom rich.console import Console\n"


def run_without_a_reader(*arguments):
    """Run Python with a standard output that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        return subprocess.run(
            [sys.executable, *map(str, arguments)], cwd=ROOT, env={**os.environ, "PYTHONPATH": ROOT_FIRST}, stdout=writer,
            stderr=subprocess.PIPE, text=True, timeout=60,
        )  # fmt: skip
    finally:
        os.close(writer)


@pytest.mark.parametrize(
    "main",
    [
        "lambda: print('a line')",
        "lambda: print('x' * 100_000)",
        "lambda: Console().print('a line')",
        "lambda: [Console().print('a line') for _ in range(2)]",
    ],
)
def test_a_reader_that_leaves_ends_a_tool_silently(main):
    done = run_without_a_reader("-c", f"{PROGRAM}exit_with({main})")
    assert (done.returncode, done.stderr) == (READER_LEFT, "")


def test_a_tool_ends_with_what_its_main_returns_and_prints_all():
    program = f"{PROGRAM}import sys\nexit_with(lambda: print('x') or 3)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (3, "x\n", "")


def test_an_exit_of_another_kind_and_an_error_stay_what_they_are():
    assert run_without_a_reader("-c", f"{PROGRAM}import sys\nexit_with(lambda: sys.exit(5))").returncode == 5
    assert "ZeroDivisionError" in run_without_a_reader("-c", f"{PROGRAM}exit_with(lambda: 1 / 0)").stderr


def test_a_real_tool_ends_silently():
    done = run_without_a_reader("tools/checks/schemas.py", "--check")
    assert (done.returncode, done.stderr) == (READER_LEFT, "")


def sentence_of(capsys, *arguments):
    parser = Arguments()
    parser.add_argument("file")
    parser.add_argument("--count", type=int)
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(arguments)
    assert ended.value.code == 1
    return capsys.readouterr().err


def test_a_bad_argument_is_one_sentence(capsys):
    assert sentence_of(capsys) == "error: the following arguments are required: file; expected what --help lists\n"
    assert sentence_of(capsys, "x", "--count", "y") == "error: --count: invalid int value: 'y'; expected what --help lists\n"


# typer ends its own; the harness reads its children
TYPER_OR_A_CHILD = {"benchmark_cli.py", "server.py", "profiled.py", "sandbox.py", "confined.py"}


def test_every_tool_begins_and_ends_that_way():
    files = {path: path.read_text() for folder in ("common/python", "tools") for path in (ROOT / folder).rglob("*.py")}
    tools = {path: text for path, text in files.items() if "\nif __name__ ==" in text and path.name not in TYPER_OR_A_CHILD}
    assert len(tools) >= 9
    assert [path for path, text in files.items() if "ArgumentParser(" in text and path.name != "command.py"] == []
    for path, text in tools.items():
        assert text.endswith('if __name__ == "__main__":\n    exit_with(main)\n'), path


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "1e999", "x", ""])
def test_an_amount_is_a_finite_number_above_0(capsys, text):
    parser = Arguments()
    parser.add_argument("--minutes", type=finite_above_0)
    assert parser.parse_args(["--minutes", "0.5"]).minutes == 0.5
    with pytest.raises(SystemExit):
        parser.parse_args(["--minutes", text])
    assert capsys.readouterr().err == f"error: --minutes: found {text}; expected a finite number above 0\n"

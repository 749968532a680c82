"""What becomes of a command of the book is what the command line and the planner of today say of it."""

import pytest

from common.python.errors import BenchmarkError
from tests.support.commands import OPTIMIZED, shared_server, write_pair
from tools.checks import book_commands
from tools.checks.book_commands import COMMANDS, PAGE, Printed, Resolved, arguments_of, page, planner, resolved, rewritten
from tools.cli.benchmark_cli import parsed

RUN = "python tools/cli/benchmark_cli.py run"


@pytest.fixture
def root(tmp_path):
    """Two pairs of one folder, of which the second needs a GPU with FP8, a ranked one, and the file form of the command line."""
    write_pair(tmp_path, "ch07:double")
    write_pair(tmp_path, "ch07:quarter", optimized=OPTIMIZED.replace("\n", "\n# needs: fp8\n", 1))
    write_pair(tmp_path, "ch04:shared", ranks="(2, 4)", inputs='lambda rand, rank, n: {"x": rand.of_rank(rank).normal(n)}')
    (tmp_path / "tools/cli").mkdir(parents=True)
    (tmp_path / book_commands.SCRIPT).write_text('"""A command line."""\n')
    (tmp_path / COMMANDS).parent.mkdir(parents=True)
    (tmp_path / PAGE).parent.mkdir(parents=True)
    return tmp_path


@pytest.fixture
def resolve(root):
    with planner(root, shared_server()) as plans_of:
        yield lambda command: resolved(command, root, plans_of)


@pytest.mark.parametrize(
    ("command", "runs", "needs"),
    [
        ("--targets ch7:double --profile", "runs `ch07:double`", "any machine"),
        ("--targets ch7:double_baseline", "runs `ch07:double` (baseline alone)", "any machine"),
        ("--targets ch07:double_baseline --targets ch07:double", "runs `ch07:double`", "any machine"),
        ("--targets ch07", "runs `ch07:double`, `:quarter`", "`ch07:quarter`: fp8 (8.9 or above)"),
        ("--targets ch07:quarter --kwargs n=64", "runs `ch07:quarter`", "fp8 (8.9 or above)"),
        ("--targets ch04:shared", "runs `ch04:shared`", "2 GPUs"),
        ("--targets ch04:shared --ranks 4", "runs `ch04:shared`", "4 GPUs"),
        ("--accept-regressions", "runs every pair", "each row its own"),
    ],
)
def test_a_command_runs_the_pairs_that_a_dry_run_plans(resolve, command, runs, needs):
    assert resolve(f"{RUN} {command}") == Resolved(runs, needs)


def test_a_listing_and_a_profiler_around_a_run(resolve):
    assert resolve("benchmark_cli list-targets --chapter ch7") == Resolved("lists `ch07:double`, `:quarter`", "any machine")
    assert resolve(f"nsys profile -o artifacts/x {RUN} --targets ch07:double").needs == "Nsight Systems"
    assert resolve(f"ncu --set full {RUN} --targets ch07:quarter").needs == "Nsight Compute; fp8 (8.9 or above)"


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (f"{RUN} --targets ch07:treble", "found nothing of that name"),
        (f"{RUN} --targets ch07:double --repetitions 3", "No such option.*--repetitions"),
        (f"{RUN} --targets ch07:double --profile everything", "--profile everything"),
        (f"{RUN} --targets ch07:double --kwargs batch_size=32", "has no such shape entry"),
        (f"{RUN} --targets ch04:shared --ranks 3", "cannot run in as many processes"),
        ("benchmark_cli measure --targets ch07:double", "No such command 'measure'"),
        ("benchmark_cli verify --targets ch07:double", "found verify; expected run or list-targets"),
        ("python benchmark_cli run --targets ch07:double", "found no benchmark_cli to run"),
        ("python other.py run --targets ch07:double", "found no benchmark_cli to run"),
        ("tools/cli/benchmark_cli.py run --targets ch07:double", "is not executable; expected python before it"),
    ],
)
def test_a_command_that_would_be_refused_is_refused(resolve, command, sentence):
    with pytest.raises(BenchmarkError, match=sentence):
        resolve(command)


def test_variables_before_a_command_are_no_part_of_it(root):
    (root / book_commands.SCRIPT).chmod(0o755)
    assert arguments_of(f"NCCL_NVLS_ENABLE=1 A=b {RUN} --kwargs 'a=1 b=2'", root) == ("", ["run", "--kwargs", "a=1 b=2"])
    assert arguments_of("tools/cli/benchmark_cli.py run -v", root) == ("", ["run", "-v"])


def refuse(command):
    if "wrong" in command:
        raise BenchmarkError(f"{command}: found wrong; expected right")
    return Resolved(f"runs `{command}`", "a GPU")


def test_what_does_not_run_says_why_and_what_to_type():
    text = page([Printed(2, "right", ""), Printed(3, "wrong", "better")], refuse)
    assert "| `right` | runs `right` | a GPU |\n" in text
    assert text.endswith("| `wrong` | wrong: found wrong. Type `better`, which runs `better` | a GPU |\n")


@pytest.mark.parametrize(
    ("command", "instead", "sentence"),
    [
        ("wrong", "", "book_commands.tsv:7: wrong: found wrong"),
        ("wrong", "wrong too", "book_commands.tsv:7: wrong too: found wrong"),
        ("right", "better", "book_commands.tsv:7: found a command that runs, and `better` to type instead"),
    ],
)
def test_a_line_of_which_nothing_becomes_is_an_error(command, instead, sentence):
    with pytest.raises(BenchmarkError, match=sentence):
        page([Printed(7, command, instead)], refuse)


def test_the_check_fails_until_the_page_is_written(root, monkeypatch, capsys):
    (root / COMMANDS).write_text(f"# Commands.\n{RUN} --targets ch07:double\n{RUN} --targets ch07:double --iters 2\t{RUN} -t ch07:double\n")
    monkeypatch.setattr(book_commands, "rewritten", lambda root: rewritten(root, shared_server()))
    assert book_commands.main(["--check"], root) == 1
    assert not (root / PAGE).exists()
    assert book_commands.main([], root) == 0
    assert book_commands.main(["--check"], root) == 0
    assert "--iters; expected" not in (root / PAGE).read_text()
    assert f"No such option: --iters. Type `{RUN} -t ch07:double`, which runs `ch07:double`" in (root / PAGE).read_text()
    (root / COMMANDS).write_text(f"{RUN} --targets ch07\n{RUN} --targets ch07\n")
    assert book_commands.main(["--check"], root) == 1
    assert "book_commands.tsv:2: found `" in capsys.readouterr().err
    (root / COMMANDS).unlink()
    assert book_commands.main(["--check"], root) == 1
    assert "expected the commands of the book" in capsys.readouterr().err


def test_flags_are_read_as_the_command_line_reads_them():
    name, flags = parsed(["run", "--profile", "--targets", "ch07:double", "--accept-regressions"])
    assert (name, flags["profile"], flags["targets"], flags["accept_regressions"]) == ("run", "minimal", ("ch07:double",), True)
    with pytest.raises(BenchmarkError, match=r"No such command ''; expected one of .*list-targets"):
        parsed([])

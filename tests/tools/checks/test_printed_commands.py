"""A command of a page is found where the command line, the planner or a script would refuse it, and passes where they would not."""

import pytest

from tests.support.commands import ROOT, shared_server, write_pair
from tools.checks import printed_commands
from tools.checks.printed_commands import printed_in


@pytest.fixture
def check(tmp_path, capsys):
    """What the check says of one page's text, in a tree with a pair and a script."""
    write_pair(tmp_path, "ch07:double")
    (tmp_path / "ch07/ask.py").write_text('from shared_flags import flags\n\nprint("--loud")\n')
    (tmp_path / "ch07/shared_flags.py").write_text('flags = ("--size",)\n')

    def said(text):
        (tmp_path / "ch07/README.md").write_text(f"# A chapter\n\n{text}\n")
        code = printed_commands.main([str(tmp_path)], shared_server())
        *found, counted = capsys.readouterr().out.splitlines()
        assert (code, counted) == (bool(found), f"printed commands: {len(found)} findings")
        return found

    return said


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ("benchmark_cli run --target ch07:double", "No such option"),
        ("benchmark_cli run --targets ch07:treble", "found nothing of that name"),
        ("benchmark_cli verify --targets ch77", "found nothing of that name"),
        ('benchmark_cli run --targets ch07:double --kwargs "size=8"', "has no such shape entry"),
        ('benchmark_cli run --targets ch07:double --kwargs "n=8,9"', "expected an integer"),
        ('benchmark_cli run --targets ch07:double --sweep "size=8,9"', "has no such shape entry"),
        ("benchmark_cli run --targets ch07:double --ranks 2", "--ranks"),
        ("benchmark_cli show ch07:treble", "found nothing of that name"),
        ("benchmark_cli shows ch07:double", "No such command 'shows'"),
        ("python ch07/asks.py", "found no ch07/asks.py"),
        ("python ch07/ask.py --width=8", "ch07/ask.py has no --width"),
    ],
)
def test_a_command_that_would_be_refused_is_found(check, command, sentence):
    (found,) = check(f"**Try.** `./setup.sh {command}`. What changes?")
    assert found.startswith("ch07/README.md:3: `")
    assert sentence in found


@pytest.mark.parametrize("page", ["```sh\n{}\n```", "In a block:\n\n    {}", "    {}   # the slower one", "`{}`"])
def test_it_is_found_wherever_it_stands(check, page):
    assert len(check(page.format("./setup.sh benchmark_cli run --targets ch07:treble"))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "`./setup.sh benchmark_cli run --targets ch7:double --profile` and `./setup.sh benchmark_cli list-targets`",
        '`./setup.sh benchmark_cli run --targets ch07:double --kwargs "n=8"`, `./setup.sh benchmark_cli run -t ch07:double --sweep n=8,9`',
        "    ./setup.sh benchmark_cli show ch07:double   # both sides",
        "```sh\n./setup.sh benchmark_cli new ch07:mine\n./setup.sh benchmark_cli verify --targets ch07:mine || test $? = 5\n```",
        "    ./setup.sh benchmark_cli run --root kernels --targets ch01:mine --json > results.json",
        "`./setup.sh python ch07/ask.py --size 8`, `./setup.sh pytest tests`, `./setup.sh --system`",
        "`benchmark_cli run --targets ch07:treble`, of another project",
    ],
)
def test_a_command_that_runs_passes(check, text):
    assert check(text) == []


def test_a_command_is_made_before_it_is_there(tmp_path):
    page = tmp_path / "README.md"
    page.write_text(
        "`./setup.sh benchmark_cli verify -t ch07:mine`\n\n    ./setup.sh benchmark_cli new ch07:mine\n    ./setup.sh python a.py\n"
    )
    assert [(each.line, each.words[0], set(each.made)) for each in printed_in(page)] == [
        (1, "benchmark_cli", set()),
        (3, "benchmark_cli", {"ch07:mine"}),
        (4, "python", {"ch07:mine"}),
    ]


def test_the_commands_of_this_tree_would_run(capsys):
    code = printed_commands.main([str(ROOT)], shared_server())
    assert (code, capsys.readouterr().out) == (0, "printed commands: 0 findings\n")

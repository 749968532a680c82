"""What counts as a README command, and that each is really run and judged by its exit code."""

import sys

import pytest

from tools.checks import readme_commands
from tools.checks.readme_commands import commands_in, pages

README = """\
# Title

Type `echo not this`:

```sh
echo one > one   # a comment behind it
# a comment
echo two \\
    > two

cat one two
```

```sh gpu
exit 5
```

```console
$ echo not this either
```
~~~python
```sh
echo nor this
~~~
"""


def run(monkeypatch, capsys, *files):
    monkeypatch.setattr(sys, "argv", ["readme_commands.py", *map(str, files)])
    code = readme_commands.main()
    return code, capsys.readouterr()


def test_commands_are_the_lines_of_sh_blocks():
    text = README
    assert [(command.line, command.text, command.expected) for command in commands_in(text)] == [
        (6, "echo one > one   # a comment behind it", (0,)),
        (8, "echo two     > two", (0,)),
        (11, "cat one two", (0,)),
        (15, "exit 5", (0, 5)),
    ]


def test_they_run_in_order_in_the_readmes_folder(tmp_path, monkeypatch, capsys):
    (tmp_path / "README.md").write_text(README)
    code, printed = run(monkeypatch, capsys, tmp_path / "README.md")
    assert code == 0, printed
    assert (tmp_path / "two").read_text() == "two\n"
    assert len(printed.out.splitlines()) == 4


def test_a_failing_command_is_named_with_what_it_said_and_the_rest_still_runs(tmp_path, monkeypatch, capsys):
    readme = tmp_path / "README.md"
    readme.write_text("```sh\necho why >&2; exit 5\ntouch later\n```\n")
    code, printed = run(monkeypatch, capsys, readme)
    assert code == 1
    assert "why" in printed.out
    assert f"{readme}:2: `echo why >&2; exit 5`: found exit code 5; expected 0" in printed.out
    assert (tmp_path / "later").exists()


def test_a_command_that_reads_its_input_gets_none(tmp_path, monkeypatch, capsys):
    (tmp_path / "README.md").write_text('```sh\ntest -z "$(cat)"\n```\n')
    assert run(monkeypatch, capsys, tmp_path / "README.md")[0] == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("```sh slow\ntrue\n```\n", "line 1: found ```sh slow; expected ```sh or ```sh gpu"),
        ("```sh\ntrue\n", "found a block without an end"),
        ("no block\n", "found no command in a ```sh block"),
    ],
)
def test_a_readme_that_would_check_nothing_is_an_error(tmp_path, monkeypatch, capsys, text, said):
    (tmp_path / "README.md").write_text(text)
    code, printed = run(monkeypatch, capsys, tmp_path / "README.md")
    assert code == 1
    assert said in printed.out + printed.err


def test_pages_of_the_docs_with_commands_count_and_others_do_not(tmp_path):
    docs = tmp_path / "common" / "docs"
    docs.mkdir(parents=True)
    (docs / "ci.md").write_text("```sh\ntrue\n```\n")
    (docs / "glossary.md").write_text("no block\n")
    assert pages(tmp_path) == [tmp_path / "README.md", docs / "ci.md"]


def test_without_a_name_the_readme_and_the_docs_are_run_in_the_project(tmp_path, monkeypatch, capsys):
    docs = tmp_path / "common" / "docs"
    docs.mkdir(parents=True)
    (tmp_path / "README.md").write_text("```sh\necho one > one\n```\n")
    (docs / "ci.md").write_text("```sh\nmv one two\n```\n")
    monkeypatch.setattr(readme_commands, "PROJECT_ROOT", tmp_path)
    code, printed = run(monkeypatch, capsys)
    assert code == 0, printed
    assert (tmp_path / "two").exists()
    assert run(monkeypatch, capsys)[0] == 0
    (docs / "ci.md").write_text("```sh\nmv none two\n```\n")
    assert run(monkeypatch, capsys)[0] == 1


def test_this_projects_pages_have_commands_that_can_be_read():
    names = {page.name for page in pages(readme_commands.PROJECT_ROOT)}
    assert names >= {"README.md", "gating-in-ci.md", "proving.md", "writing-a-pair.md"}


def test_a_missing_readme_is_an_error(tmp_path, monkeypatch, capsys):
    code, printed = run(monkeypatch, capsys, tmp_path / "README.md")
    assert code == 1
    assert "README.md" in printed.err

"""A listing is the source, nothing but the source, and says what became of each line."""

import html
import re
from pathlib import Path

import pytest

from common.python.report.html_pair import Source, changes, whole

BEFORE = "import torch\n\n\ndef step(x):\n    return x + 1\n"
AFTER = "import torch\n\n\ndef step(x):\n    # <b>one</b> & only\n    return x.add_(1)\n"


def plain(lines):
    return [html.unescape(re.sub(r"</?i[^>]*>", "", str(line.code))) for line in lines]


@pytest.fixture
def files():
    def write(*texts, suffix=".py"):
        return [Source(Path(f"{number}{suffix}"), text) for number, text in enumerate(texts)]

    return write


def test_a_whole_file_is_all_its_lines_escaped_and_highlighted(files):
    listing = whole(*files(AFTER))

    assert plain(listing.lines) == AFTER.splitlines()
    assert {line.kind for line in listing.lines} == {"same"}
    assert listing.note == "6 lines"
    assert str(listing.lines[4].code) == "    <i class=c># &lt;b&gt;one&lt;/b&gt; &amp; only</i>"
    assert "<i class=k>import</i>" in listing.lines[0].code


@pytest.mark.parametrize(
    "text",
    [
        'x = """a\nb\n\nc"""\n',
        "no newline at the end",
        "\n\nblank lines first\n\n",
        "form\x0cfeed\x0b and \u2028 are no ends of lines\nsecond\n",
        "\tif (a < b && c > d) { /* a\n comment */ }\n",
        "",
    ],
)
@pytest.mark.parametrize("suffix", [".py", ".cu"])
def test_lines_are_those_of_the_file_whatever_is_in_them(files, text, suffix):
    assert plain(whole(*files(text, suffix=suffix)).lines) == text.removesuffix("\n").split("\n")


def test_changes_are_removed_lines_then_added_ones_with_the_lines_around(files):
    listing = changes(*files(BEFORE, AFTER))

    assert [(line.kind, text) for line, text in zip(listing.lines, plain(listing.lines), strict=True)][-4:] == [
        ("same", "def step(x):"),
        ("removed", "    return x + 1"),
        ("added", "    # <b>one</b> & only"),
        ("added", "    return x.add_(1)"),
    ]
    assert listing.note == "2 lines added, 1 removed"


def test_lines_that_are_left_out_leave_a_mark(files):
    text = "".join(f"line{number}\n" for number in range(40))
    listing = changes(*files(text, text.replace("line5\n", "five\n").replace("line30\n", "thirty\n")))
    kinds = [line.kind for line in listing.lines]

    assert kinds.count("gap") == 2
    assert kinds[0] == "gap"
    assert len(kinds) == 2 * (1 + 3 + 2 + 3)


def test_files_that_are_the_same_say_so(files):
    assert changes(*files(BEFORE, BEFORE)).note == "the two files are the same"


def test_the_listing_of_a_change_holds_the_new_file_where_it_changed(files):
    listing = changes(*files(BEFORE, AFTER))
    new = [text for line, text in zip(listing.lines, plain(listing.lines), strict=True) if line.kind in ("same", "added")]

    assert listing.lines[0].kind == "gap"  # the first line is further from a change than is shown
    assert new == AFTER.splitlines()[1:]

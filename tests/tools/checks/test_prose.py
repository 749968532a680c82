"""A page that was written anew keeps its budgets and its words; an honest text passes, and each rule has one that it catches."""

import pytest

from tests.support.commands import ROOT
from tools.checks.prose import WORDS, findings_in, main, paragraphs, sentences

FORM = "<!-- form: 2 -->"
LONG = "One fact a sentence is the rule, and this sentence has far too many words for it because " + "it goes on and " * 4 + "ends."
HONEST = f"""\
# Chapter 7: memory
{FORM}

A reader learns to count [sectors](glossary.md#sector), e.g. those of a store. A warp has 32 lanes.

<!-- table: begin -->
| pair | idea | predicted | measured | share of ceiling |
| --- | --- | --- | --- | --- |
| [warp_specialization_producer_consumer](optimized_warp_specialization_producer_consumer.py) | short | 3x | H200 7.5x | 12 % -> 86 % |

Times: [RESULTS.md](RESULTS.md).
<!-- table: end -->

## transpose

**What changes.** The tile lies in shared memory, so that a warp writes along a row of y. Turn on the cache, in turn.

**Why it should help.** 36 bytes instead of 8, at 1.5x the rate, predict 36 / 12 = 3x:

    baseline = 36 * n / (1.5 * l2)    # 3x and 50 %

**Measured.** <!-- measured: ch07:transpose speedup -->7.45x (H200)<!-- /measured --> at
<!-- measured: ch07:transpose share optimized -->86 % (H200)<!-- /measured --> of the ceiling, for tiles of 32 x 32.

**Try.** `run --gate 0.5 --share 50%` with 16x16.

## copy

A section without a generated figure may say 3x.
"""


@pytest.fixture
def chapter(tmp_path):
    (tmp_path / "ch07").mkdir()
    return tmp_path / "ch07" / "README.md"


def found(page, text):
    page.write_text(text)
    return [str(finding) for finding in findings_in(page.parents[1])]


def test_an_honest_page_passes(chapter):
    assert found(chapter, HONEST) == []


def test_a_page_that_was_not_written_anew_is_left_alone_but_for_its_table(chapter):
    old = HONEST.replace(FORM, "").replace("A reader", f"{LONG} Warps take turns. A reader").replace("with 16x16", "gains 3x")
    assert found(chapter, old) == []
    wide = old.replace("| short |", f"| {'w' * 61} |")
    assert found(chapter, wide) == [f"ch07/README.md:9: cell: found 61 characters, `{'w' * 30}`; expected at most 60"]
    assert found(chapter, old.replace("| short |", f"| {'w' * 58}\\|w |")) == []


def test_of_long_sentences_the_first_five_are_told_with_their_lines(chapter):
    text = HONEST.replace("A reader learns", f"{LONG}\n{LONG} A reader learns")
    assert found(chapter, text) == [f"ch07/README.md:{line}: sentence: found 35 words; expected at most 25" for line in (4, 5)]
    assert len(found(chapter, HONEST + f"\n\n## gather\n\n- {LONG}\n- {LONG}\n- {LONG}\n\n## scatter\n" + f"\n- {LONG}" * 4)) == 5


def test_a_section_has_at_most_200_words_without_its_equations_tables_and_code(chapter):
    filler = "\n\n".join(["A warp has thirty-two lanes which compute in step."] * 20)  # 9 words each
    equations = "\n\n".join(["    baseline = 36 * n / (1.5 * l2)"] * 30)
    section = f"# Chapter 7: memory\n{FORM}\n\nOne.\n\n## copy\n\n{filler}\n\n{equations}\n\n| a | b |\n| - | - |\n"
    twenty = f"{'Each lane moves one word. ' * 4}\n"
    assert found(chapter, f"{section}\n{twenty}\n## transpose\n\n{twenty}") == []
    assert found(chapter, f"{section}\n{twenty} More.\n") == ["ch07/README.md:8: section: found 201 words; expected at most 200"]


def test_a_sentence_is_counted_as_it_is_shown():
    text = "- **Label.** A `span of many words` is one word\n  and [a link](to/some/where.md) two <!-- a comment -->. Next. `Code` then!\n"
    assert list(sentences(paragraphs(text)[0])) == [
        (1, "A `cccccccccccccccccc` is one word\n  and [a link] two ."),
        (2, "Next."),
        (2, "`cccc` then!"),
    ]


def test_paragraphs_leave_out_headings_tables_code_and_what_is_generated():
    text = "# T\n\none\ntwo\n\n- three\n- four\n\n    code\n\n```\ncode\n\ncode\n```\n| a |\n\n"
    text += "<!-- t: begin -->\nfive\n<!-- t: end -->\n## U\nsix\n"
    assert [(each.line, each.text, each.section) for each in paragraphs(text)] == [
        (3, "one\ntwo", 1),
        (6, "- three", 1),
        (7, "- four", 1),
        (22, "six", 2),
    ]


DENIALS = ["Nobody has measured it yet.", "Nobody has measured these sides yet.", "Not measured yet.", "Unknown until a GPU has run it."]


@pytest.mark.parametrize("said", DENIALS)
def test_a_section_that_shows_a_measured_value_may_not_deny_it(chapter, said):
    text = HONEST.replace("**Try.**", f"**If it missed.** {said}\n\n**Try.**")
    finding = f"`**If it missed.** {said}` beside a measured value; expected what came of the prediction"
    assert found(chapter, text) == [f"ch07/README.md:25: measured: found {finding}"]
    unmeasured = text.replace("7.45x (H200)", "not measured yet").replace("86 % (H200)", "not measured yet")
    assert found(chapter, unmeasured) == []


@pytest.mark.parametrize("figure", ["7.4x", "86 %", "86%"])
def test_a_figure_typed_beside_a_generated_one_is_found(chapter, figure):
    expected = "expected a marker, as in `{{measured: ch07:transpose speedup}}`, or words"
    assert found(chapter, HONEST.replace("for tiles", f"not {figure}, for tiles")) == [
        f"ch07/README.md:23: typed figure: found `{figure}`; {expected}"
    ]


@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ("An access takes two turns.", "wavefront, or pass, or iteration"),
        ("It is in one turn.", "wavefront, or pass, or iteration"),
        ("It waits for the place of a block.", "slot, or co-resident block"),
        ("It reads rows of this.", "the noun: rows of the tile"),
        ("It is behind those of the one.", "the noun, again"),
        ("It is that of that.", "the noun, again"),
        ("It moves for its alignment's sake.", "so that, or because of"),
        ("It counts parts of sectors.", "partial sectors"),
        ("Streams are of two kinds.", "there are two kinds of, with their nouns"),
        ("It takes 2 us beside 86.", "the noun of each number, and whether they add up or overlap"),
        ("10 KB are enough, and 8 are not.", "the noun and the unit of the number"),
        ("Loads are under way.", "in flight"),
    ],
)
def test_a_way_of_saying_that_readers_stumbled_over_is_found(chapter, said, instead):
    findings = found(chapter, f"{HONEST}\n{said}\n")
    assert len(findings) == 1
    assert findings[0].startswith("ch07/README.md:31: words: found `")
    assert findings[0].endswith(f"`; expected {instead}")


@pytest.mark.parametrize(
    "said",
    [
        "The clock is turned down, the tile returned.",
        "Set the bit to turn off the hint.",
        "Rows of these tiles are read.",
        "It costs 8 bytes and 16 are read.",
        "`turns` is a name.",
        "All blocks have a place.",
    ],
)
def test_honest_words_pass(chapter, said):
    assert found(chapter, f"{HONEST}\n{said}\n") == []


def test_every_word_has_a_case_above():
    assert len({word.instead for word in WORDS}) == 11


@pytest.mark.parametrize(
    ("text", "finding"),
    [
        (f"# P\n{FORM}\n" + "w\n" * 118, ""),
        (f"# P\n{FORM}\n" + "w\n" * 119, "README.md:121: front page: found 121 lines; expected at most 120"),
        (f"# P\n{FORM}\n" + "word | " * 999, ""),
        (f"# P\n{FORM}\n" + "word | " * 1000, "README.md:1: front page: found 1001 words; expected at most 1000"),
        ("# P\n" + "word word\n" * 2000, ""),
    ],
)
def test_the_front_page_has_a_budget_once_it_is_written_anew(tmp_path, text, finding):
    (tmp_path / "README.md").write_text(text)
    assert [str(each) for each in findings_in(tmp_path)] == ([finding] if finding else [])


def test_the_command_prints_findings_and_fails(chapter, capsys):
    chapter.write_text(f"{HONEST}\nLoads are under way.\n")
    assert main([str(chapter.parents[1])]) == 1
    assert capsys.readouterr().out.endswith("expected in flight\nprose: 1 findings\n")
    chapter.write_text(HONEST)
    assert main([str(chapter.parents[1])]) == 0


def test_this_tree_passes():
    assert [str(finding) for finding in findings_in(ROOT)] == []

"""A measured value in prose comes from a marker: filled in, checked, and refused where nothing is known by its name."""

import pytest

from common.python.gate.expectations import keep_expectations
from common.python.results import Share
from common.python.wording import significant, time_text
from tests.support.factories import an_expectation, recorded_ladder
from tests.tools.checks.conftest import LADDER_NS, README
from tools.checks import pages
from tools.checks.measured_pairs import pairs_by_folder
from tools.checks.measured_values import value_of

UNITS = recorded_ladder({**LADDER_NS, "library": 50_000.0}, count=24)
SHARE = Share(key="dram", share=0.64, ceiling_ns=1.0, floor_ns=1.0, at_held_clock=None)
EXPECTED = an_expectation(units=UNITS, shares={"optimized": SHARE})


@pytest.fixture
def measured(ladder):
    """The ladder with a library, its small shape measured on a second model too."""
    (ladder / "library_transpose.py").write_text('"""Library: torch."""\n')
    small = EXPECTED.model_copy(update={"rungs": {side: rung for side, rung in EXPECTED.rungs.items() if side != "once"}})
    keep_expectations(ladder / "expectations_h100.json", "transpose", {"small one": an_expectation(2.0)})
    keep_expectations(ladder / "expectations_h200.json", "transpose", {"large": EXPECTED, "small one": small})
    return ladder


def value(folder, what):
    known = {each.pair.target: each for pairs in pairs_by_folder(folder.parent).values() for each in pairs}
    return value_of(what, known, "page.md:1")


def sentence(folder, text):
    (folder / "README.md").write_text(README + text)
    assert pages.main([], folder.parent) == 0
    return (folder / "README.md").read_text().split("After.\n")[1]


@pytest.mark.parametrize(
    ("figure", "text"),
    [
        ("speedup", f"{significant(EXPECTED.speedup.estimate)}x"),
        ("time baseline", time_text(EXPECTED.sides["baseline"].time_ns.estimate)),
        ("time once", time_text(EXPECTED.sides["once"].time_ns.estimate)),
        ("time library", time_text(EXPECTED.sides["library"].time_ns.estimate)),
        ("share optimized", "64 %"),
        ("of_library", "1.25x"),
        ("rung once", "1.33x"),
    ],
)
def test_every_figure_is_read_from_what_was_measured_with_its_model(measured, figure, text):
    assert value(measured, f"ch07:transpose @large {figure}") == f"{text} (H200)"
    assert value(measured, f"ch07:transpose@large {figure} on H200") == f"{text} (H200)"
    assert value(measured, f"ch07:transpose {figure} @large on h200") == f"{text} (H200)"


def test_without_a_model_all_that_were_measured_are_told(measured):
    assert value(measured, "ch07:transpose speedup @small one") == "2.00x (H100), 2.00x (H200)"
    assert value(measured, "ch07:transpose speedup @small one on h100") == "2.00x (H100)"


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("ch07:transpose_wide speedup", "not measured yet"),
        ("ch07:transpose_wide speedup on b200", "not measured yet (B200)"),
        ("ch07:transpose speedup @large on h100", "not measured yet (H100)"),
        ("ch07:transpose share baseline @large", "not measured yet"),
        ("ch07:transpose rung once @small one", "not accepted (H200)"),
    ],
)
def test_what_nobody_measured_is_said_and_not_invented(measured, what, text):
    assert value(measured, what) == text


@pytest.mark.parametrize(
    ("what", "complaint"),
    [
        ("ch07:transpos speedup", "found the target ch07:transpos; expected one that `list-targets` shows"),
        ("ch07:transpose speed", "found `measured: ch07:transpose speed`; expected TARGET [@SHAPE] FIGURE [on MODEL]"),
        ("ch07:transpose time twice", "found `time twice` of ch07:transpose, which has no time of twice; expected one of baseline, once,"),
        ("ch07:transpose rung baseline", "which has no rung of baseline; expected one of once, baseline_copy, optimized"),
        ("ch07:transpose_wide rung once", "which has no rung of once; expected a pair that has one"),
        ("ch08:copy of_library", "which has no of_library of library; expected a pair that has one"),
        ("ch07:transpose speedup", "found no shape for ch07:transpose; expected one of @small one, @large"),
        ("ch07:transpose speedup @wide", "found @wide for ch07:transpose; expected one of @small one, @large"),
    ],
)
def test_a_marker_of_something_unknown_is_one_sentence_that_says_where(measured, capsys, what, complaint):
    (measured / "README.md").write_text(f"{README}\nGains\n{{{{measured: {what}}}}}.\n")
    assert pages.main([], measured.parent) == 1
    told = capsys.readouterr().err
    assert complaint in told
    line = (measured / "README.md").read_text().splitlines().index("Gains") + 2
    assert f"ch07/README.md:{line}: " in told
    assert told.count("\n") == 1


def test_a_bare_marker_becomes_two_comments_around_the_value(measured):
    filled = "Gains <!-- measured: ch07:transpose speedup @large -->2.00x (H200)<!-- /measured -->.\n"
    assert sentence(measured, "Gains {{measured:  ch07:transpose  speedup @large }}.\n") == filled
    assert sentence(measured, filled) == filled


def test_a_value_that_is_not_what_was_measured_is_written_again_and_fails_the_check(measured, capsys):
    stale = "Gains <!-- measured: ch07:transpose speedup @large -->9.99x (H200)<!-- /measured -->.\n"
    good = sentence(measured, stale)
    assert "9.99x" not in good
    assert pages.main(["--check"], measured.parent) == 0
    readme = measured / "README.md"
    readme.write_text(readme.read_text().replace(good, stale))
    assert pages.main(["--check"], measured.parent) == 1
    assert "ch07/README.md: differs" in capsys.readouterr().out


@pytest.mark.parametrize(
    "code",
    [
        "Write `{{measured: ch07:x speedup}}`.\n",
        "```\n{{measured: ch07:x speedup}}\n```\n",
        "Text:\n\n    {{measured: ch07:x speedup}}\n    <!-- measured: half -->\n",
    ],
)
def test_code_is_left_as_it_is(measured, code):
    assert sentence(measured, code) == code


@pytest.mark.parametrize("half", ["<!-- measured: ch07:transpose speedup @large -->2x", "2x<!-- /measured -->"])
def test_half_a_marker_is_an_error(measured, capsys, half):
    (measured / "README.md").write_text(f"{README}{half}\n")
    assert pages.main([], measured.parent) == 1
    assert "found half of a marker; expected `<!-- measured: ... -->` and `<!-- /measured -->` around a value" in capsys.readouterr().err

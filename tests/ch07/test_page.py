"""Chapter 7's page: a section per pair in the form that chapters have, with the equations of the pair's own `predicts:` lines."""

import re

import pytest

from common.python.gate.expectations import read_expectations
from common.python.gate.predicted import terms_of
from common.python.pairs.directives import ladder_steps
from common.python.pairs.discovery import discover
from tests.ch07.sides import CHAPTER
from tests.support.teeth import ROOT

PAIRS = {pair.name: pair for pair in discover(ROOT).pairs if pair.workload.parent == CHAPTER}
PAGE = (CHAPTER / "README.md").read_text()
LABELS = ["What changes.", "Why it should help.", "Measured.", "If it missed.", "Try."]
WITHOUT_EQUATION = {"l2_streaming"}
"""Pairs that guess."""


def sections(page):
    """The text of each section of a page, by its heading."""
    _, *parts = re.split(r"^## (.+)\n", page, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def equations_on_page(section):
    """Side and right side of each equation that a section shows."""
    return dict(re.findall(r"^    (\w+) += (.+)$", section, re.MULTILINE))


def equations_of(text):
    """Side and right side of each time that a file predicts."""
    return dict(re.findall(r"(?:#|//) predicts: (\w+)(?: \S+ ms)? = (.+?)(?: on \w+)?(?:  \(.*)?$", text, re.MULTILINE))


def predicted_by(pair):
    """What a pair's own files predict: the optimized side, and the steps of its ladder that it does not borrow."""
    steps = [path for step in ladder_steps(pair.workload) for path in CHAPTER.glob(f"optimized_{pair.name}_{step}.*")]
    return "\n".join(path.read_text() for path in (pair.sides["optimized"], *steps))


def faults(name, section, predicted):
    """What a section lacks or has too much of."""
    found = []
    if re.findall(r"^\*\*(.+?)\*\*", section, re.MULTILINE) != LABELS:
        found.append("labels")
    if equations_on_page(section) != equations_of(predicted):
        found.append("equations")
    if not re.search(rf"\*\*Try\.\*\* `\./setup\.sh benchmark_cli \w+ .*\bch07:{name}\b", section):
        found.append("command")
    if not re.search(rf"\*\*Measured\.\*\*.*measured: ch07:{name} speedup", section):
        found.append("measured")
    return found


def test_every_pair_has_its_section_and_no_other():
    assert sorted(sections(PAGE)) == sorted(PAIRS)


@pytest.mark.parametrize("name", PAIRS)
def test_a_section_is_of_the_form(name):
    assert faults(name, sections(PAGE)[name], predicted_by(PAIRS[name])) == []
    assert bool(equations_of(PAIRS[name].sides["optimized"].read_text())) == (name not in WITHOUT_EQUATION)


def test_faults_are_found():
    section, predicted = sections(PAGE)["copy"], predicted_by(PAIRS["copy"])
    for planted, fault in [
        (section.replace("**Why it should help.**", "**Why.**"), "labels"),
        (section.replace("(4 + 4) * n", "(4 + 5) * n"), "equations"),
        (section.replace("--targets ch07:copy`", "--targets ch07:copies`"), "command"),
        (section.replace("ch07:copy speedup", "ch07:hbm_copy speedup"), "measured"),
    ]:
        assert faults("copy", planted, predicted) == [fault]


def says_that_it_missed(section):
    """Whether a section gives a cause of a miss."""
    (said,) = re.findall(r"\*\*If it missed\.\*\* (.+)", section)
    return not said.startswith(("It did not", "Unknown"))


@pytest.mark.parametrize("name", PAIRS)
def test_a_term_that_missed_has_its_cause_on_the_page(name):
    rows = read_expectations(CHAPTER / "expectations_h200.json").pairs.get(name, {})
    terms = [term for shape, row in rows.items() for term in terms_of(PAIRS[name], row, shape)]
    assert bool(terms) == bool(rows)
    if any(term.missed for term in terms):
        assert says_that_it_missed(sections(PAGE)[name])


def test_a_section_that_denies_a_miss_is_told_from_one_that_explains_it():
    assert says_that_it_missed(sections(PAGE)["transpose"])
    assert not says_that_it_missed(sections(PAGE)["copy"])

"""Chapter 12's page: a section per pair in the form that chapters have, with the equations of the pair's own `predicts:` lines."""

import re

import pytest

from common.python.pairs.discovery import discover
from tests.support.teeth import ROOT

CHAPTER = ROOT / "ch12"
PAIRS = {pair.name: pair for pair in discover(ROOT).pairs if pair.workload.parent == CHAPTER}
PAGE = (CHAPTER / "README.md").read_text()
LABELS = ["What changes.", "Why it should help.", "Measured.", "If it missed.", "Try."]


def sections():
    """The text of each section, by its heading."""
    _, *parts = re.split(r"^## (.+)\n", PAGE, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def equations(text, pattern):
    return dict(re.findall(pattern, text, re.MULTILINE))


def test_every_pair_has_its_section_and_no_other():
    assert sorted(sections()) == sorted(PAIRS)


@pytest.mark.parametrize("name", PAIRS)
def test_a_section_is_of_the_form(name):
    section = sections()[name]
    assert re.findall(r"^\*\*(.+?)\*\*", section, re.MULTILINE) == LABELS
    assert re.search(rf"\*\*Try\.\*\* `\./setup\.sh benchmark_cli \w+ .*\bch12:{name}\b", section)
    assert f"measured: ch12:{name} speedup" in section


@pytest.mark.parametrize("name", PAIRS)
def test_the_equations_are_those_that_were_predicted(name):
    predicted = PAIRS[name].sides["optimized"].read_text()
    found = equations(predicted, r"(?:#|//) predicts: (baseline|optimized) \S+ [mu]s = (.+?)(?:  \(.*)?$")
    assert equations(sections()[name], r"^    (baseline|optimized) += (.+)$") == found
    assert found

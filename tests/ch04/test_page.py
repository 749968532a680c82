"""The sections of the pairs: their form, and that their equations are the pairs' `predicts:` lines."""

import re

import pytest

from tests.support.teeth import ROOT

CHAPTER = ROOT / "ch04"
ALL = sorted(path.stem.removeprefix("workload_") for path in CHAPTER.glob("workload_*.py"))
PAIRS = ("nccl", "nccl_config", "no_overlap", "tensor_parallel_async", "nvl72")
LABELS = ["What changes.", "Why it should help.", "Measured.", "If it missed.", "Try."]


def sections():
    """The text of each section, by its heading."""
    _, *parts = re.split(r"^## (.+)\n", (CHAPTER / "README.md").read_text(), flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


@pytest.mark.parametrize("name", ALL)
def test_a_section_is_of_the_form(name):
    section = sections()[name]
    assert re.findall(r"^\*\*(.+?)\*\*", section, re.MULTILINE) == LABELS


@pytest.mark.parametrize("name", PAIRS)
def test_the_equations_are_those_that_were_predicted(name):
    predicted = re.findall(r"# predicts: (\w+) .*?\d [mM][sB] = (.+?) on h100", (CHAPTER / f"optimized_{name}.py").read_text())
    assert re.findall(r"^    (baseline|optimized) += (.+)$", sections()[name], re.MULTILINE) == predicted
    assert bool(predicted) == (name != "nccl_config")  # which guesses

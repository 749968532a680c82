"""A pair whose accepted row missed its prediction has a reason on its chapter's page, below **If it missed.**"""

import re

import pytest

from tests.support.teeth import ROOT
from tools.checks.measured_pairs import README, pairs_by_folder
from tools.checks.predicted_ratios import terms_at
from tools.checks.prediction_page import section_heading

REASON = re.compile(r"\*\*If it missed\.\*\*(.*?)(?=\n\*\*|\n#|\Z)", re.DOTALL)
DENIED = re.compile(r"\s*(?:It did not|Unknown)\b")


def section_of(page, name):
    """The section of a page that its heading names."""
    return re.split(r"^## ", page.partition(f"\n## {name}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def misses():
    """Each pair with its page and the terms that an accepted row missed by more than the band."""
    for folder, pairs in pairs_by_folder(ROOT).items():
        for measured in pairs:
            terms = [term for _, shape, expected in measured.timings() for term in terms_at(measured, shape, expected)]
            if missed := [f"{term.subject} {term.shape}" for term in terms if term.missed]:
                yield folder / README, section_heading(measured, folder / README), missed


MISSES = list(misses())


def test_misses_are_found():
    assert {"flash_attention_cudnn", "matmul", "dsmem_reduction"} <= {name for _, name, _ in MISSES}


@pytest.mark.parametrize(("page", "name", "missed"), MISSES, ids=lambda value: value if isinstance(value, str) else "")
def test_a_miss_has_a_reason(page, name, missed):
    reason = REASON.search(section_of(page.read_text(encoding="utf-8"), name))
    assert reason, f"{page}: found no reason in the section of {name}; expected one, as it missed {missed}"
    assert not DENIED.match(reason[1]), f"{page}: found{reason[1][:60]!r} of {name}; expected a reason, as it missed {missed}"

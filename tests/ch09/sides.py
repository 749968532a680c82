"""What the tests of chapter 9 read from a side: its text, its constants, and its machine code."""

import re

from tests.support.cuda_sides import constants_of, listing_of, values_at
from tests.support.teeth import ROOT

__all__ = ["CHAPTER", "code_of", "constants", "text_of", "values_at"]

CHAPTER = ROOT / "ch09"


def text_of(side):
    return (CHAPTER / side).read_text()


def constants(side):
    return constants_of(CHAPTER / side)


def code_of(side, architecture="90a"):
    """The instructions of a side's kernels, one a line."""
    return re.findall(r"/\*[0-9a-f]{4,}\*/ +([^;]+?) *;", listing_of(CHAPTER / side, architecture))

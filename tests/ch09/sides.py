"""What the tests of chapter 9 read from a side: its text, its constants, the arguments that bind, and its machine code."""

import re
import subprocess

from common.python.machine.description import find_tool
from tests.cuda_sides import arguments_of, built, constants_of, values_at
from tests.teeth import ROOT

__all__ = ["CHAPTER", "arguments", "code_of", "constants", "text_of", "values_at"]

CHAPTER = ROOT / "ch09"


def text_of(side):
    return (CHAPTER / side).read_text()


def constants(side):
    return constants_of(CHAPTER / side)


def arguments(workload, side):
    return arguments_of(workload, CHAPTER / side)


def code_of(side, folder, architecture="90a"):
    """The instructions of a side's kernels, one a line."""
    library = built(CHAPTER / side, folder, architecture).library
    listing = subprocess.run([find_tool("cuobjdump"), "-sass", library], capture_output=True, text=True, check=True).stdout
    return re.findall(r"/\*[0-9a-f]{4,}\*/ +([^;]+?) *;", listing)

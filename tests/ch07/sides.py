"""What the tests of chapter 7 read from a side's source, and how often shared memory takes a turn for a warp's request."""

import re
from collections import Counter

from common.python.cuda_launch import Names, check_source
from common.python.directives import read_directives
from common.python.random_inputs import Inputs
from tests.teeth import CPU, ROOT

CHAPTER = ROOT / "ch07"
WARP = range(32)
SECTOR = 32


def text_of(side):
    return (CHAPTER / side).read_text()


def constants(side):
    """The `constexpr int`s of a source, in order, so that one may be stated by others."""
    values = {}
    for name, expression in re.findall(r"constexpr int (\w+) = ([^;]+);", text_of(side)):
        values[name] = eval(expression.replace("/", "//"), {}, values)
    return values


def wavefronts(addresses, width):
    """How often shared memory must be read or written for a warp's request: `width` bytes a lane, byte addresses by lane.

    128 bytes go at once, so the lanes of 128 / width go together; of each of the 32 banks they get one 4-byte word at a time.
    """
    together = 128 // width
    total = 0
    for first in range(0, len(addresses), together):
        words = {address // 4 + word for address in addresses[first : first + together] for word in range(width // 4)}
        total += max(Counter(word % 32 for word in words).values())
    return total


def arguments(workload, side):
    """The names of LAUNCH's arguments, once each is known to have something to bind."""
    shape = workload.check_at[0]
    values = Inputs(workload, shape, 1, CPU, ROOT).values
    signatures = check_source(CHAPTER / side, Names.of(workload, read_directives(CHAPTER / side), values, shape))
    return [argument.name for argument in signatures.launch]

"""What the tests of chapter 7 read from a side's source, and how often shared memory takes a turn for a warp's request."""

from collections import Counter

from tests.support.cuda_sides import constants_of
from tests.support.teeth import ROOT

CHAPTER = ROOT / "ch07"
WARP = range(32)
SECTOR = 32


def text_of(side):
    return (CHAPTER / side).read_text()


def constants(side):
    return constants_of(CHAPTER / side)


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

"""What the tests of chapter 7 read from a side's source, and the wavefronts that shared memory takes for a warp's request."""

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
    """Wavefronts of shared memory for one request of a warp: `width` bytes per lane, byte addresses by lane.

    A wavefront serves 128 bytes, so 128 / width lanes go together. It serves one 4-byte word per bank, of 32 banks.
    """
    together = 128 // width
    total = 0
    for first in range(0, len(addresses), together):
        words = {address // 4 + word for address in addresses[first : first + together] for word in range(width // 4)}
        total += max(Counter(word % 32 for word in words).values())
    return total

"""ch07:bank_conflicts: the wavefronts follow from the width of the tile, and nothing else differs between the sides."""

import re

from tests.ch07.sides import WARP, constants, text_of, wavefronts

BASELINE, OPTIMIZED = "baseline_bank_conflicts.cu", "optimized_bank_conflicts.cu"


def wavefronts_of(side):
    """Wavefronts per 32 floats of a tile: filled along a row, loaded and stored down a column, read along a row."""
    (width,) = re.findall(r"float tile\[ROWS\]\[([^\]]+)\]", text_of(side))
    width = eval(width, {}, constants(side))
    (along,) = {wavefronts([4 * (row * width + lane) for lane in WARP], 4) for row in range(32)}
    (across,) = {wavefronts([4 * (lane * width + column) for lane in WARP], 4) for column in range(32)}
    return along + across + across + along


def test_padding_makes_66_wavefronts_four():
    assert (wavefronts_of(BASELINE), wavefronts_of(OPTIMIZED)) == (66, 4)


def test_the_sides_differ_in_their_padding_only():
    def code(side):
        return re.sub(r"//.*", "", text_of(side)).replace("COLS + 1]", "COLS]").split()

    assert code(BASELINE) == code(OPTIMIZED)

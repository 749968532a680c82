"""How often shared_bf16_tiles.cuh and the tensor cores' side of ch09:tensor_core go through the L1, from where lanes lie."""

import re

from tests.ch09.sides import constants, text_of
from tests.ch10 import model

TILES = "shared_bf16_tiles.cuh"


def l1_cycles():
    """Cycles of the L1 for a pair of tiles: its loads, its stores to shared memory, and 6 ldmatrix of 512 bytes a warp and 16 of depth."""
    values = constants(TILES)
    tile, depth, warps = values["TILE"], values["DEPTH"], values["THREADS"] // 32
    return sum(loads_of_a_block()) + (2 * 2 * tile * depth + warps * depth // 16 * 6 * 512) // model.SHARED


def loads_of_a_block():
    """Passes of the L1 for a pair of tiles, of a and of b: one for every line that eight lanes of a load touch."""
    values = constants(TILES)
    eights = [[place_of(thread) for thread in range(first, first + 8)] for first in range(0, values["THREADS"], 8)]
    rows_of_a = [len({place["a_row"] for place in eight}) for eight in eights]  # 64 bytes of each
    lines_of_b = [len({(place["b_row"], 2 * place["b_col"] // 128) for place in eight}) for eight in eights]
    return 2 * sum(rows_of_a), 2 * sum(lines_of_b)


def place_of(thread):
    """Rows and columns of a thread's first groups, by the names of Place."""
    declared = re.search(r"struct Place \{(.*?)\};", text_of(TILES), re.DOTALL)[1]
    index = type("Index", (), {"x": thread})
    names = {**constants(TILES), "threadIdx": index}
    return {name: eval(expression.replace("/", "//"), {}, names) for name, expression in re.findall(r"(\w+) = ([^,;]+)", declared)}

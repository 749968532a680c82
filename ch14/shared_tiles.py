"""How a matrix c is cut into tiles, and in which order programs take them."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl


class Tile(NamedTuple):
    """What Triton is told about a tile of c: its rows and columns, the depth of a K-step, warps, and buffers of the software pipeline."""

    rows: int
    cols: int
    depth: int
    warps: int
    stages: int

    def options(self):
        """The constants of a kernel of this chapter. Bands of 4, 8 and 16 rows of tiles were about equally fast on an H100."""
        sizes = {"ROWS": self.rows, "COLS": self.cols, "DEPTH": self.depth, "GROUP": 8}
        return {**sizes, "num_warps": self.warps, "num_stages": self.stages}


@triton.jit
def tile_of(index, tile_rows, tile_cols, GROUP: tl.constexpr):
    """Row and column of the `index`-th tile, in bands of GROUP rows of tiles: tiles that run together share operands in the L2."""
    band = index // (GROUP * tile_cols)
    first = band * GROUP
    rows = min(tile_rows - first, GROUP)
    within = index % (GROUP * tile_cols)
    return first + within % rows, within // rows


def tiles_in(m, n, tile):
    """How many tiles cover c."""
    return triton.cdiv(m, tile.rows) * triton.cdiv(n, tile.cols)


def multiprocessors(device):
    """Of the GPU; 1 on a CPU, where Triton's interpreter runs one program after another."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1

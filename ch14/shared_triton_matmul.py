"""Product of two bf16 matrices, c = a b^T, summed in fp32: the work, PyTorch's answer, and what several sides launch."""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

from common import Spec, Workload


class Tile(NamedTuple):
    """What Triton is told about a tile of c: its rows and columns, the depth of a K-step, warps, and buffers of the software pipeline."""

    rows: int
    cols: int
    depth: int
    warps: int
    stages: int

    def options(self):
        """The constants of a kernel of this chapter. Bands of 8 rows of tiles were as fast as any on an H100."""
        sizes = {"ROWS": self.rows, "COLS": self.cols, "DEPTH": self.depth, "GROUP": 8}
        return {**sizes, "num_warps": self.warps, "num_stages": self.stages}


def workload(check_at):
    """The work of the chapter's matrix products: sums of k products are of unit scale, and each matrix moves once through DRAM."""
    return Workload(
        inputs=lambda rand, m, n, k: {
            "a": rand.normal(m, k, dtype=torch.bfloat16),
            "b": rand.normal(n, k, std=k**-0.5, dtype=torch.bfloat16),
        },
        outputs=lambda m, n, k: {"c": Spec((m, n), torch.bfloat16)},
        reference=lambda a, b: a @ b.T,
        time_at={"m": 8192, "n": 8192, "k": 8192},
        cpu_at=None,  # Triton's interpreter checks a kernel, it does not race
        check_at=check_at,
        work=lambda m, n, k: {"bf16": 2 * m * n * k, "dram_read": 2 * (m * k + n * k), "dram_write": 2 * m * n},
        rtol=2.0**-8,  # half of what separates two bf16
        # Sums that are cut off, not rounded, after every 16 of 8192 products are off by at most 5.3e-5 of 65 536 (simulated); times 4.
        atol=2e-4,
    )


def library(a, b):
    """PyTorch's answer, which is cuBLAS's."""
    c = torch.empty(a.shape[0], b.shape[0], dtype=a.dtype, device=a.device)
    return lambda: torch.mm(a, b.T, out=c)


@triton.jit
def tile_of(index, tile_rows, tile_cols, GROUP: tl.constexpr):
    """Row and column of the `index`-th tile, in bands of GROUP rows of tiles: tiles that run together share operands in the L2."""
    band = index // (GROUP * tile_cols)
    first = band * GROUP
    rows = min(tile_rows - first, GROUP)
    within = index % (GROUP * tile_cols)
    return first + within % rows, within // rows


@triton.jit
def descriptor_matmul(from_a, from_b, to, m, n, k, ROWS: tl.constexpr, COLS: tl.constexpr, DEPTH: tl.constexpr, GROUP: tl.constexpr):
    """Tiles by tensor descriptors, so by the TMA. A program computes every `num_programs`-th tile: one each, where there are as many."""
    tile_rows, tile_cols = tl.cdiv(m, ROWS), tl.cdiv(n, COLS)
    for index in tl.range(tl.program_id(0), tile_rows * tile_cols, tl.num_programs(0), flatten=True):
        row, col = tile_of(index, tile_rows, tile_cols, GROUP)
        sums = tl.zeros((ROWS, COLS), tl.float32)
        for at in range(0, k, DEPTH):
            sums = tl.dot(from_a.load([row * ROWS, at]), from_b.load([col * COLS, at]).T, sums)
        to.store([row * ROWS, col * COLS], sums.to(tl.bfloat16))


def by_descriptors(a, b, tile, programs=None):
    """A step that launches `descriptor_matmul` with `programs` programs, or one a tile, and returns c."""
    (m, k), n = a.shape, b.shape[0]
    c = torch.empty(m, n, dtype=a.dtype, device=a.device)
    from_a = TensorDescriptor.from_tensor(a, [tile.rows, tile.depth])
    from_b = TensorDescriptor.from_tensor(b, [tile.cols, tile.depth])
    to = TensorDescriptor.from_tensor(c, [tile.rows, tile.cols])
    tiles = tiles_in(m, n, tile)
    grid = (min(programs or tiles, tiles),)

    def step():
        descriptor_matmul[grid](from_a, from_b, to, m, n, k, **tile.options())
        return c

    return step


def tiles_in(m, n, tile):
    """How many tiles cover c."""
    return triton.cdiv(m, tile.rows) * triton.cdiv(n, tile.cols)


def multiprocessors(device):
    """Of the GPU; 1 on a CPU, where Triton's interpreter runs one program after another."""
    return torch.cuda.get_device_properties(device).multi_processor_count if device.type == "cuda" else 1

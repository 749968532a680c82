"""Optimized: warp roles, barriers and layouts written out in Gluon."""
# needs: wgmma, tma
# guess: 1.01x, Triton's compiler already overlaps loads with products; a warp of their own frees the two warpgroups from issuing them
# proves: /\bUSETMAXREG\b/
# has: tma_load_tile
# has: wgmma_f16_bf16
# has: spills == 0

import torch
from shared_tiles import Tile, multiprocessors, tiles_in
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma, warpgroup_mma, warpgroup_mma_wait
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

TILE = Tile(rows=128, cols=256, depth=64, warps=8, stages=3)


@gluon.jit
def tile_of(index, tile_rows, tile_cols, GROUP: gl.constexpr):
    """As in shared_tiles.py: Gluon calls Gluon's functions alone."""
    band = index // (GROUP * tile_cols)
    first = band * GROUP
    rows = gl.minimum(tile_rows - first, GROUP)
    within = index % (GROUP * tile_cols)
    return first + within % rows, within // rows


@gluon.jit
def load(from_a, from_b, ring_a, ring_b, full, empty, tile_rows, tile_cols, steps, GROUP: gl.constexpr):
    """The warp that loads: waits until a slot of the ring is empty, and has the TMA fill it."""
    STAGES: gl.constexpr = ring_a.shape[0]
    DEPTH: gl.constexpr = ring_a.shape[2]
    BYTES: gl.constexpr = from_a.block_type.nbytes + from_b.block_type.nbytes
    count = 0
    for index in range(gl.program_id(0), tile_rows * tile_cols, gl.num_programs(0)):
        row, col = tile_of(index, tile_rows, tile_cols, GROUP)
        for step in range(steps):
            slot = count % STAGES
            mbarrier.wait(empty.index(slot), (count // STAGES) % 2 ^ 1)
            mbarrier.expect(full.index(slot), BYTES)
            tma.async_copy_global_to_shared(from_a, [row * ring_a.shape[1], step * DEPTH], full.index(slot), ring_a.index(slot))
            tma.async_copy_global_to_shared(from_b, [col * ring_b.shape[1], step * DEPTH], full.index(slot), ring_b.index(slot))
            count += 1


@gluon.jit
def multiply(to, ring_a, ring_b, staged, full, empty, tile_rows, tile_cols, steps, GROUP: gl.constexpr):
    """The warpgroups that multiply: one K-step is always in the tensor cores while the next is issued."""
    STAGES: gl.constexpr = ring_a.shape[0]
    ROWS: gl.constexpr = ring_a.shape[1]
    COLS: gl.constexpr = ring_b.shape[1]
    sums_layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[gl.num_warps(), 1], instr_shape=[16, COLS, 16])
    count = 0
    for index in range(gl.program_id(0), tile_rows * tile_cols, gl.num_programs(0)):
        row, col = tile_of(index, tile_rows, tile_cols, GROUP)
        sums = gl.zeros((ROWS, COLS), gl.float32, sums_layout)
        for step in range(steps):
            slot = count % STAGES
            mbarrier.wait(full.index(slot), (count // STAGES) % 2)
            sums = warpgroup_mma(ring_a.index(slot), ring_b.index(slot).permute((1, 0)), sums, is_async=True)
            sums = warpgroup_mma_wait(num_outstanding=1, deps=(sums,))  # the K-step before is done
            mbarrier.arrive(empty.index((count + STAGES - 1) % STAGES), pred=step > 0)
            count += 1
        sums = warpgroup_mma_wait(num_outstanding=0, deps=(sums,))
        mbarrier.arrive(empty.index((count + STAGES - 1) % STAGES))
        tma.store_wait(pendings=0)
        staged.store(sums.to(gl.bfloat16))
        fence_async_shared()
        tma.async_copy_shared_to_global(to, [row * ROWS, col * COLS], staged)
    tma.store_wait(pendings=0)


@gluon.jit
def specialized_matmul(from_a, from_b, to, m, n, k, STAGES: gl.constexpr, GROUP: gl.constexpr):
    ROWS: gl.constexpr = from_a.block_type.shape[0]
    COLS: gl.constexpr = from_b.block_type.shape[0]
    DEPTH: gl.constexpr = from_a.block_type.shape[1]
    ring_a = gl.allocate_shared_memory(gl.bfloat16, [STAGES, ROWS, DEPTH], from_a.layout)
    ring_b = gl.allocate_shared_memory(gl.bfloat16, [STAGES, COLS, DEPTH], from_b.layout)
    staged = gl.allocate_shared_memory(gl.bfloat16, [ROWS, COLS], to.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for slot in gl.static_range(STAGES):
        mbarrier.init(full.index(slot), count=1)
        mbarrier.init(empty.index(slot), count=1)
    fence_async_shared()
    tile_rows, tile_cols, steps = gl.cdiv(m, ROWS), gl.cdiv(n, COLS), gl.cdiv(k, DEPTH)
    gl.warp_specialize(
        [
            (multiply, (to, ring_a, ring_b, staged, full, empty, tile_rows, tile_cols, steps, GROUP)),
            (load, (from_a, from_b, ring_a, ring_b, full, empty, tile_rows, tile_cols, steps, GROUP)),
        ],
        [1],
        [24],
    )


def prepare(a, b):
    (m, k), n = a.shape, b.shape[0]
    c = torch.empty(m, n, dtype=a.dtype, device=a.device)

    def described(tensor, rows, cols):
        return TensorDescriptor.from_tensor(tensor, [rows, cols], gl.NVMMASharedLayout.get_default_for([rows, cols], gl.bfloat16))

    from_a, from_b = described(a, TILE.rows, TILE.depth), described(b, TILE.cols, TILE.depth)
    to = described(c, TILE.rows, TILE.cols)
    grid = (min(multiprocessors(a.device), tiles_in(m, n, TILE)),)

    def step():
        specialized_matmul[grid](from_a, from_b, to, m, n, k, STAGES=TILE.stages, GROUP=8, num_warps=TILE.warps)
        return c

    return step

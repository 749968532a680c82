"""Optimized: Gluon: warpgroups multiply under each other's exponentials."""
# needs: wgmma, tma
# predicts: baseline 1.99 ms = heads * queries * (keys + 128) * (256 / bf16 + 1.35e-13) on h100  (half of softmax hidden: assumed)
# predicts: optimized 1.66 ms = heads * queries * ((keys + 128) * 294.4 / bf16 + 2.3e-8 / sm_count) on h100  (edges)
# predicts@8k: baseline 0.501 ms = heads * queries * (keys + 128) * (256 / bf16 + 1.35e-13) on h100
# predicts@8k: optimized 0.43 ms = heads * queries * ((keys + 128) * 294.4 / bf16 + 2.3e-8 / sm_count) on h100
# predicts@4k: baseline 0.127 ms = heads * queries * (keys + 128) * (256 / bf16 + 1.35e-13) on h100
# predicts@4k: optimized 0.115 ms = heads * queries * ((keys + 128) * 294.4 / bf16 + 2.3e-8 / sm_count) on h100
# proves: /\bUSETMAXREG\b/
# has: tma_load_tile
# has: wgmma_f16_bf16
# has: spills == 0

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma, warpgroup_mma, warpgroup_mma_wait
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

ROWS, COLS, STAGES = 64, 128, 2  # queries of a role; keys of a tile; tiles of keys, and of values, in shared memory


@gluon.jit
def load(from_q, from_k, from_v, halves_q, ready_q, rings, row, first, steps):
    """The warp that loads: queries once, then keys and, a step later, values, from the last tile to the first."""
    ring_k, ring_v, full_k, full_v, empty_k, empty_v = rings
    ROWS: gl.constexpr = halves_q.shape[1]
    STAGES: gl.constexpr = ring_k.shape[0]
    COLS: gl.constexpr = ring_k.shape[1]
    for half in gl.static_range(2):
        mbarrier.expect(ready_q.index(half), from_q.block_type.nbytes)
        tma.async_copy_global_to_shared(from_q, [row + half * ROWS, 0], ready_q.index(half), halves_q.index(half))
    for step in range(steps + 1):
        if step < steps:
            slot = step % STAGES
            mbarrier.wait(empty_k.index(slot), (step // STAGES) % 2 ^ 1)
            mbarrier.expect(full_k.index(slot), from_k.block_type.nbytes)
            tma.async_copy_global_to_shared(from_k, [first + (steps - 1 - step) * COLS, 0], full_k.index(slot), ring_k.index(slot))
        if step > 0:
            before = (step - 1) % STAGES
            mbarrier.wait(empty_v.index(before), ((step - 1) // STAGES) % 2 ^ 1)
            mbarrier.expect(full_v.index(before), from_v.block_type.nbytes)
            tma.async_copy_global_to_shared(from_v, [first + (steps - step) * COLS, 0], full_v.index(before), ring_v.index(before))


@gluon.jit
def softmax(scores, top, total, unit):
    """Shares of the new maximum, which replaces `top`, their total, and what older shares shrink by."""
    new = gl.maximum(top, gl.max(scores, 1))
    shares = gl.exp2(scores * unit - (new * unit)[:, None])
    shrink = gl.exp2((top - new) * unit)
    return shares, new, total * shrink + gl.sum(shares, 1), shrink


@gluon.jit
def compute(
    y, held_q, ready_q, own_turn, next_turn, HALF: gl.constexpr, TURNS: gl.constexpr, rings, place, keys, steps, unit, CAUSAL: gl.constexpr
):
    """One warpgroup and its half of the queries. `place`: its first row of a head, that row in y, and where the head ends in y."""
    ring_k, ring_v, full_k, full_v, empty_k, empty_v = rings
    query, row, end = place
    STAGES: gl.constexpr = ring_k.shape[0]
    ROWS: gl.constexpr = held_q.shape[0]
    COLS: gl.constexpr = ring_k.shape[1]
    DIM: gl.constexpr = held_q.shape[1]
    of_scores: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, COLS, 16])
    of_sums: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, DIM, 16])
    in_registers: gl.constexpr = gl.DotOperandLayout(operand_index=0, parent=of_sums, k_width=2)
    col = gl.arange(0, COLS, gl.SliceLayout(0, of_scores))
    top = gl.full([ROWS], float("-inf"), gl.float32, gl.SliceLayout(1, of_scores))
    total = gl.zeros([ROWS], gl.float32, gl.SliceLayout(1, of_scores))
    sums = gl.zeros([ROWS, DIM], gl.float32, of_sums)
    none = gl.zeros([ROWS, COLS], gl.float32, of_scores)
    mbarrier.wait(ready_q, 0)
    mbarrier.wait(full_k.index(0), 0)
    scores = warpgroup_mma(held_q, ring_k.index(0).permute((1, 0)), none, use_acc=False, is_async=True)
    scores = warpgroup_mma_wait(num_outstanding=0, deps=(scores,))
    mbarrier.arrive(empty_k.index(0))
    # This is the last tile of keys. No other is crossed by the diagonal or by the end of the keys: a block starts where a tile starts.
    seen = gl.full([ROWS], keys, gl.int32, gl.SliceLayout(1, of_scores))
    if CAUSAL:
        seen = gl.minimum(query + 1 + gl.arange(0, ROWS, gl.SliceLayout(1, of_scores)), keys)
    scores = gl.where(((steps - 1) * COLS + col)[None, :] < seen[:, None], scores, float("-inf"))
    shares, top, total, shrink = softmax(scores, top, total, unit)
    rounded = gl.convert_layout(shares.to(gl.bfloat16), in_registers)
    mbarrier.wait(full_k.index(1 % STAGES), (1 // STAGES) % 2, pred=steps > 1)
    for step in range(1, steps):
        slot = step % STAGES
        before = (step - 1) % STAGES
        if TURNS:
            mbarrier.wait(own_turn, step % 2 ^ HALF)  # the first turn, in step 1, is that of half 0: its barrier is fresh then
        scores = warpgroup_mma(held_q, ring_k.index(slot).permute((1, 0)), none, use_acc=False, is_async=True)
        mbarrier.wait(full_v.index(before), ((step - 1) // STAGES) % 2)
        sums = warpgroup_mma(rounded, ring_v.index(before), sums, is_async=True)
        if TURNS:
            mbarrier.arrive(next_turn)
        scores = warpgroup_mma_wait(num_outstanding=1, deps=(scores,))
        mbarrier.arrive(empty_k.index(slot))
        shares, top, total, shrink = softmax(scores, top, total, unit)
        # A loop between the shares and the next wait: ptxas would compute the shares after that.
        mbarrier.wait(full_k.index((step + 1) % STAGES), ((step + 1) // STAGES) % 2, pred=step + 1 < steps)
        sums, _ = warpgroup_mma_wait(num_outstanding=0, deps=(sums, rounded))
        mbarrier.arrive(empty_v.index(before))
        rounded = gl.convert_layout(shares.to(gl.bfloat16), in_registers)
        sums = sums * gl.convert_layout(shrink, gl.SliceLayout(1, of_sums))[:, None]
    last = (steps - 1) % STAGES
    mbarrier.wait(full_v.index(last), ((steps - 1) // STAGES) % 2)
    sums = warpgroup_mma(rounded, ring_v.index(last), sums, is_async=True)
    sums = warpgroup_mma_wait(num_outstanding=0, deps=(sums,))
    mbarrier.arrive(empty_v.index(last))
    sums = sums * gl.convert_layout(1 / total, gl.SliceLayout(1, of_sums))[:, None]
    rows = row + gl.arange(0, ROWS, gl.SliceLayout(1, of_sums))
    to = y + rows.to(gl.int64)[:, None] * DIM + gl.arange(0, DIM, gl.SliceLayout(0, of_sums))[None, :]
    gl.store(to, sums.to(gl.bfloat16), mask=(rows < end)[:, None])


@gluon.jit
def attend(from_q, from_k, from_v, y, queries, keys, unit, STAGES: gl.constexpr, TURNS: gl.constexpr, CAUSAL: gl.constexpr):
    """Two halves of ROWS queries of a head. Of all heads the last queries, which see most keys, start first."""
    ROWS: gl.constexpr = from_q.block_type.shape[0]
    COLS: gl.constexpr = from_k.block_type.shape[0]
    DIM: gl.constexpr = from_q.block_type.shape[1]
    halves_q = gl.allocate_shared_memory(gl.bfloat16, [2, ROWS, DIM], from_q.layout)
    ring_k = gl.allocate_shared_memory(gl.bfloat16, [STAGES, COLS, DIM], from_k.layout)
    ring_v = gl.allocate_shared_memory(gl.bfloat16, [STAGES, COLS, DIM], from_v.layout)
    ready_q = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    full_k = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    full_v = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty_k = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty_v = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    turns = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    for half in gl.static_range(2):
        mbarrier.init(ready_q.index(half), count=1)
        mbarrier.init(turns.index(half), count=1)
    for slot in gl.static_range(STAGES):
        mbarrier.init(full_k.index(slot), count=1)
        mbarrier.init(full_v.index(slot), count=1)
        mbarrier.init(empty_k.index(slot), count=2)  # both halves read a tile
        mbarrier.init(empty_v.index(slot), count=2)
    fence_async_shared()
    head, query = gl.program_id(0), (gl.num_programs(1) - 1 - gl.program_id(1)) * (2 * ROWS)
    row, end, first = head * queries + query, (head + 1) * queries, head * keys
    gl.static_assert(2 * ROWS % COLS == 0)
    steps = gl.cdiv(gl.minimum(query + 2 * ROWS, keys) if CAUSAL else keys, COLS)
    rings = (ring_k, ring_v, full_k, full_v, empty_k, empty_v)
    places = ((query, row, end), (query + ROWS, row + ROWS, end))
    turn_0, turn_1, ready_0, ready_1 = turns.index(0), turns.index(1), ready_q.index(0), ready_q.index(1)
    gl.warp_specialize(
        [
            (compute, (y, halves_q.index(0), ready_0, turn_0, turn_1, 0, TURNS, rings, places[0], keys, steps, unit, CAUSAL)),
            (compute, (y, halves_q.index(1), ready_1, turn_1, turn_0, 1, TURNS, rings, places[1], keys, steps, unit, CAUSAL)),
            (load, (from_q, from_k, from_v, halves_q, ready_q, rings, row, first, steps)),
        ],
        [4, 1],
        [240, 24],
    )


def attention(q, k, v, causal, turns):
    """A step; `turns`: whether the halves start products in turn."""
    (heads, queries, dim), keys = q.shape, k.shape[1]
    y = torch.empty_like(q)
    unit = 1.4426950408889634 * dim**-0.5

    def described(tensor, rows):
        layout = gl.NVMMASharedLayout.get_default_for([rows, dim], gl.bfloat16)
        return TensorDescriptor.from_tensor(tensor.flatten(0, 1), [rows, dim], layout)

    maps = [described(q, ROWS), described(k, COLS), described(v, COLS)]

    def step():
        grid = (heads, triton.cdiv(queries, 2 * ROWS))
        attend[grid](*maps, y, queries, keys, unit, STAGES=STAGES, TURNS=turns, CAUSAL=bool(causal), num_warps=4)
        return y

    return step


def prepare(q, k, v, causal):
    return attention(q, k, v, causal, turns=True)

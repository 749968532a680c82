"""Optimized: kernels write to peers' memory; the host knows no counts."""
# needs: gpus 2
# instead: ch15:expert_parallelism
# predicts: baseline 0.400 ms = 34 * 6e-6 + 40e-6 + 20e-6 + 2 * (2 * tokens * top * hidden / 2 / 300e9 + 30e-6) + 27e-6
# predicts: optimized 0.109 ms = 2 * (2 * tokens * top * hidden / 2 / 300e9 + 10e-6) + 40e-6
# proves: launches < 0.5 x baseline
# proves: calls cudaStreamSynchronize == 0

import torch
import torch.distributed._symmetric_memory as symmetric
import triton
import triton.language as tl
from shared_symmetric import addresses_of


@triton.jit
def memory_of(rank, addresses, element: tl.constexpr):
    return tl.load(addresses + rank).to(tl.pointer_type(element))


@triton.jit
def send(x, chosen, rows, slots, choices, hidden, rank, TOP: tl.constexpr, LOCAL: tl.constexpr, RANKS: tl.constexpr, WIDE: tl.constexpr):
    """One program per choice: its token goes to its row on the expert's rank; `slots` there names the expert, on other ranks -1."""
    choice = tl.program_id(0)
    row = (rank * choices + choice).to(tl.int64)
    expert = tl.load(chosen + choice)
    for peer in tl.static_range(RANKS):
        tl.store(memory_of(peer, slots, tl.int64) + row, tl.where(expert // LOCAL == peer, expert % LOCAL, -1))
    col = tl.arange(0, WIDE)
    token = tl.load(x + (choice // TOP) * hidden + col, mask=col < hidden)
    tl.store(memory_of(expert // LOCAL, rows, tl.bfloat16) + row * hidden + col, token, mask=col < hidden)


@triton.jit
def answer(rows, slots, scale, returned, choices, hidden, WIDE: tl.constexpr):
    """One program per reserved row: if a token was written there, write its expert's answer back to the rank that sent it."""
    row = tl.program_id(0).to(tl.int64)
    slot = tl.load(slots + row)
    if slot >= 0:
        col = tl.arange(0, WIDE)
        token = tl.load(rows + row * hidden + col, mask=col < hidden).to(tl.float32)
        value = token * tl.load(scale + slot * hidden + col, mask=col < hidden).to(tl.float32)
        tl.store(memory_of(row // choices, returned, tl.bfloat16) + (row % choices) * hidden + col, value, mask=col < hidden)


def prepare(x, chosen, gates, scale, rank, ranks, tokens, top, hidden):
    choices, wide = tokens * top, triton.next_power_of_2(hidden)
    shapes = (((ranks * choices, hidden), x.dtype), ((ranks * choices,), torch.int64), ((choices, hidden), x.dtype))
    rows, slots, back = (symmetric.empty(*shape, dtype=dtype, device=x.device) for shape, dtype in shapes)
    (rows_at, slots_at, back_at), handles = zip(*(addresses_of(buffer, rank) for buffer in (rows, slots, back)), strict=True)

    def step():
        send[(choices,)](x, chosen, rows_at, slots_at, choices, hidden, rank, TOP=top, LOCAL=len(scale), RANKS=ranks, WIDE=wide)
        handles[0].barrier()  # all ranks have sent, and have read what came back in the last step
        answer[(ranks * choices,)](rows, slots, scale, back_at, choices, hidden, WIDE=wide)
        handles[0].barrier()
        return torch.bmm(gates[:, None], back.view(tokens, top, hidden)).squeeze(1)

    return step

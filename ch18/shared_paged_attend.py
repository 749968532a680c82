"""The kernel of decode attention over paged keys and values: it attends to a part of a context."""

import triton
import triton.language as tl


@triton.jit
def average_of(q, keys, values, table, sequence, head, heads, begin, last, pages, unit, DIM: tl.constexpr, GROUP: tl.constexpr,
               PAGE: tl.constexpr, TILE: tl.constexpr):  # fmt: skip
    """The softmax average of tokens `begin` to `last`, for the GROUP query heads of a key head, and its sum of exponentials as a logarithm.

    [16, DIM] and [16]: rows up to 16 pad the tensor cores' tile. The logarithm is binary, and minus infinity where there is no token.
    """
    row, lane = tl.arange(0, 16), tl.arange(0, DIM)
    first_row = (sequence * heads + head) * GROUP
    query = tl.load(q + (first_row + row)[:, None] * DIM + lane[None, :], mask=(row < GROUP)[:, None], other=0.0)
    top = tl.full((16,), -float("inf"), tl.float32)
    total = tl.zeros((16,), tl.float32)
    average = tl.zeros((16, DIM), tl.float32)
    for start in range(begin, last, TILE):
        token = start + tl.arange(0, TILE)
        inside = token < last
        page = tl.load(table + sequence * pages + token // PAGE, mask=inside, other=0).to(tl.int64)
        slot = (page * PAGE + token % PAGE) * heads + head
        key = tl.load(keys + slot[None, :] * DIM + lane[:, None])
        scores = tl.where(inside[None, :], tl.dot(query, key) * unit, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        share, fade = tl.exp2(scores - higher[:, None]), tl.exp2(top - higher)
        value = tl.load(values + slot[:, None] * DIM + lane[None, :])
        total = total * fade + tl.sum(share, 1)
        average = average * fade[:, None] + tl.dot(share.to(value.dtype), value)
        top = higher
    some = tl.where(total > 0, total, 1.0)
    return average / some[:, None], top + tl.log2(some)


@triton.jit
def attend(q, keys, values, table, lengths, parts, sums, span, pages, unit, DIM: tl.constexpr, GROUP: tl.constexpr, PAGE: tl.constexpr,
           TILE: tl.constexpr, EARLY: tl.constexpr = False):  # fmt: skip
    """Part program_id(2) of a sequence, `span` tokens: its own softmax average and logarithm, of the query heads of one key head.

    EARLY lets a kernel that was launched behind it start: it waits for this one's stores itself.
    """
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()
    sequence, head, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    heads, count = tl.num_programs(1), tl.num_programs(2)
    last = tl.minimum(part * span + span, tl.load(lengths + sequence))
    average, log = average_of(q, keys, values, table, sequence, head, heads, part * span, last, pages, unit, DIM, GROUP, PAGE, TILE)
    row, lane = tl.arange(0, 16), tl.arange(0, DIM)
    at = ((sequence * heads + head) * GROUP + row) * count + part
    tl.store(sums + at, log, mask=row < GROUP)
    tl.store(parts + at[:, None] * DIM + lane[None, :], average.to(parts.dtype.element_ty), mask=(row < GROUP)[:, None])

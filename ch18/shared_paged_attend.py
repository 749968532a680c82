"""The kernels of decode attention over paged keys and values: attend to a part of a context, and merge the parts."""

import triton
import triton.language as tl


@triton.jit
def attend(q, keys, values, table, lengths, parts, sums, span, pages, unit, DIM: tl.constexpr, GROUP: tl.constexpr, PAGE: tl.constexpr,
           TILE: tl.constexpr, EARLY: tl.constexpr = False):  # fmt: skip
    """The GROUP query heads of a key head over part program_id(2) of a sequence, `span` tokens; rows up to 16 pad the tensor cores' tile.

    Writes the part's own softmax average and the binary logarithm of its sum of exponentials: minus infinity for a part without tokens.
    EARLY lets a kernel that was launched behind it start: it waits for this one's stores itself.
    """
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()
    sequence, head, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    heads, count = tl.num_programs(1), tl.num_programs(2)
    row, lane = tl.arange(0, 16), tl.arange(0, DIM)
    first_row = (sequence * heads + head) * GROUP
    query = tl.load(q + (first_row + row)[:, None] * DIM + lane[None, :], mask=(row < GROUP)[:, None], other=0.0)
    last = tl.minimum(part * span + span, tl.load(lengths + sequence))
    top = tl.full((16,), -float("inf"), tl.float32)
    total = tl.zeros((16,), tl.float32)
    average = tl.zeros((16, DIM), tl.float32)
    for start in range(part * span, last, TILE):
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
    at = (first_row + row) * count + part
    tl.store(sums + at, top + tl.log2(some), mask=row < GROUP)
    tl.store(parts + at[:, None] * DIM + lane[None, :], (average / some[:, None]).to(parts.dtype.element_ty), mask=(row < GROUP)[:, None])


@triton.jit
def merge(parts, sums, y, count, DIM: tl.constexpr, COUNT: tl.constexpr, EARLY: tl.constexpr = False):
    """A head's answer: the averages of its `count` parts, weighted by their sums of exponentials.

    EARLY is for programmatic dependent launch: it has started before the kernel that writes the parts ends, and waits for that.
    """
    head, part, lane = tl.program_id(0), tl.arange(0, COUNT), tl.arange(0, DIM)
    inside = part < count
    if EARLY:
        tl.extra.cuda.gdc_wait()
    log = tl.load(sums + head * count + part, mask=inside, other=-float("inf"))
    weight = tl.exp2(log - tl.max(log, 0))
    value = tl.load(parts + (head * count + part)[:, None] * DIM + lane[None, :], mask=inside[:, None], other=0.0)
    answer = tl.sum(value * weight[:, None], 0) / tl.sum(weight, 0)
    tl.store(y + head * DIM + lane, answer.to(y.dtype.element_ty))

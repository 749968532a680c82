"""Kernels that merge the answers of parts of a context, each with the logarithm of its sum of exponentials."""

import triton
import triton.language as tl


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


@triton.jit
def merge_parts(parts, sums, starts, y, heads, DIM: tl.constexpr, COUNT: tl.constexpr, EARLY: tl.constexpr = False):
    """As `merge`, of a sequence's own number of parts, COUNT at a time: `starts` has the first part of each sequence and of the next."""
    sequence, head, lane = tl.program_id(0), tl.program_id(1), tl.arange(0, DIM)
    first, end = tl.load(starts + sequence), tl.load(starts + sequence + 1)
    top, total, answer = -float("inf"), 0.0, tl.zeros((DIM,), tl.float32)
    if EARLY:
        tl.extra.cuda.gdc_wait()
    for begin in range(first, end, COUNT):
        part = begin + tl.arange(0, COUNT)
        log = tl.load(sums + part * heads + head, mask=part < end, other=-float("inf"))
        value = tl.load(parts + (part * heads + head)[:, None] * DIM + lane[None, :], mask=(part < end)[:, None], other=0.0)
        higher = tl.maximum(top, tl.max(log, 0))
        weight, fade = tl.exp2(log - higher), tl.exp2(top - higher)
        answer = answer * fade + tl.sum(value * weight[:, None], 0)
        total = total * fade + tl.sum(weight, 0)
        top = higher
    tl.store(y + (sequence * heads + head) * DIM + lane, (answer / total).to(y.dtype.element_ty))

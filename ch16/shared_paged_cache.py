"""How a token enters paged keys and values, in bf16 or in e4m3 with a scale of its own for each head."""

import triton
import triton.language as tl

PAGE = 16  # tokens
LARGEST = tl.constexpr(448.0)  # of e4m3


@triton.jit
def write(x, cache, scales, slot, lane, DIM: tl.constexpr, FP8: tl.constexpr):
    """A head's key or value into its slot; in e4m3 with the scale that maps its largest element to 448."""
    value = tl.load(x + lane).to(tl.float32)
    if FP8:
        scale = tl.maximum(tl.max(tl.abs(value), 0), 1e-12) / LARGEST
        tl.store(scales + slot, scale)
        value = value / scale
    tl.store(cache + slot * DIM + lane, value.to(cache.dtype.element_ty))


@triton.jit
def append(k, v, keys, values, k_scales, v_scales, table, context, pages, DIM: tl.constexpr, PAGE: tl.constexpr, FP8: tl.constexpr):
    """The newest token, `context - 1`, of sequence program_id(0) and head program_id(1)."""
    sequence, head, heads = tl.program_id(0), tl.program_id(1), tl.num_programs(1)
    lane, token = tl.arange(0, DIM), context - 1
    page = tl.load(table + sequence * pages + token // PAGE).to(tl.int64)
    slot = (page * heads + head) * PAGE + token % PAGE
    row = (sequence * heads + head) * DIM
    write(k + row, keys, k_scales, slot, lane, DIM, FP8)
    write(v + row, values, v_scales, slot, lane, DIM, FP8)

"""The kernel of decode attention over paged keys and values whose programs attend to parts of any sequences, as a plan says."""

import triton
import triton.language as tl
from shared_paged_attend import average_of


@triton.jit
def attend_part(q, keys, values, table, plan, parts, sums, pages, unit, DIM: tl.constexpr, GROUP: tl.constexpr, PAGE: tl.constexpr,
                TILE: tl.constexpr, EARLY: tl.constexpr = False):  # fmt: skip
    """As `attend`, where part program_id(1) is any part of any sequence: `plan` has its sequence, its first token and its end.

    Programs of a part are neighbours in the grid, so that those without a token come last, and the others share the SMs evenly.
    """
    if EARLY:
        tl.extra.cuda.gdc_launch_dependents()
    head, part, heads = tl.program_id(0), tl.program_id(1), tl.num_programs(0)
    sequence, begin, last = tl.load(plan + part * 3), tl.load(plan + part * 3 + 1), tl.load(plan + part * 3 + 2)
    average, log = average_of(q, keys, values, table, sequence, head, heads, begin, last, pages, unit, DIM, GROUP, PAGE, TILE)
    row, lane = tl.arange(0, 16), tl.arange(0, DIM)
    at = (part * heads + head) * GROUP + row
    tl.store(sums + at, log, mask=row < GROUP)
    tl.store(parts + at[:, None] * DIM + lane[None, :], average, mask=(row < GROUP)[:, None])

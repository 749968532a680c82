"""A matrix of 4-bit weights as a function of one vector."""

import torch
import triton
from shared_int4_kernel import LIFT, PLACES, int4_gemv

ROWS, WARPS, STAGES = 8, 4, 2  # of a program: the fastest of 14 on an H200, at 4096 and at 11008 columns
ROWS_IN_THE_INTERPRETER = 512  # which takes as long for a program, whatever its tile


def linear(q, divisors=None):
    """A function from x [1, k] to w (x / divisors) [1, rows], in x's dtype, for weights `q` (Int4 in groups of 128)."""
    rows, groups, group = q.codes.shape
    at_once = ROWS if isinstance(int4_gemv, triton.JITFunction) else ROWS_IN_THE_INTERPRETER
    words = torch.zeros(-(-rows // at_once) * at_once, groups, group // 8, dtype=torch.int64, device=q.codes.device)  # whole programs
    for eighth, codes in enumerate(q.codes.view(rows, groups, 8, -1).unbind(2)):
        words[:rows] |= codes.long() << 4 * eighth
    scales, zeros = (torch.zeros(len(words), groups, dtype=kind, device=words.device) for kind in (torch.float16, torch.uint8))
    scales[:rows], zeros[:rows] = q.scale.squeeze(-1), q.zero.squeeze(-1)
    # Those of a program's rows lie together, group for group.
    scales, zeros = (each.view(-1, at_once, groups).transpose(1, 2).contiguous() for each in (scales, zeros))
    words, factors = words.to(torch.int32), None
    if divisors is not None:
        factors = torch.tensor(PLACES.value, dtype=torch.float32).repeat_interleave(groups * group // 8).to(words.device)
        factors = 2.0**LIFT.value / factors / divisors.float()

    def multiply(x):
        y = x.new_empty(1, rows)
        meta = {"K": groups * group, "ROWS": at_once, "CHUNKS": 32 * WARPS, "STAGES": STAGES, "num_warps": WARPS}
        int4_gemv[triton.cdiv(rows, at_once),](words, scales, zeros, x, factors, y, rows, **meta)
        return y

    return multiply

"""Causal attention over a sequence that lies on several ranks, in the layout in which all ranks have as much to do.

The sequence is cut into 2 x ranks chunks. Rank r has chunk r and chunk 2 x ranks - 1 - r: one that sees little and one that sees much.
Tensors are tokens x heads x dim.
"""

import functools

import torch
import torch.distributed as dist


def chunks_of(rank, ranks):
    """The two chunks that lie on `rank`, in the order of the sequence."""
    return rank, 2 * ranks - 1 - rank


def attend(q, k, v, causal):
    """Attention of one block, and the log of the sum of exponentials of each query's scores: tokens x heads x dim, and tokens x heads.

    Scores are scaled by the inverse root of dim. `causal`: query i sees keys up to i.
    """
    flash = torch.ops.aten._scaled_dot_product_flash_attention if q.is_cuda else torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    out, log_sum, *_ = flash(*(x.transpose(0, 1)[None] for x in (q, k, v)), is_causal=causal)
    return out[0].transpose(0, 1), log_sum[0].transpose(0, 1)


@functools.cache
def urgent_group():
    """All ranks in a group whose kernels get the next free SMs, before waiting blocks of attention. Collective when first called."""
    if dist.get_backend() != "nccl":
        return dist.group.WORLD
    return dist.new_group(backend="nccl", pg_options=dist.ProcessGroupNCCL.Options(is_high_priority_stream=True))

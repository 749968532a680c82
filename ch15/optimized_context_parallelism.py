"""Optimized: ring attention: attend to a block while the next comes."""
# predicts: baseline 3.37 ms = heads * dim * chunk * (16 * chunk / 400e12 + 8 / 300e9 + 32 / dram_copy) on h100  (two GPUs; guessed rates)
# predicts: optimized 3.08 ms = heads * dim * chunk * (16 * chunk / 400e12 + 60 / dram_copy) on h100  (the transfer is hidden)
# proves: overlap nccl flash >= 0.3

import torch
import torch.distributed as dist
from shared_ring import attend, urgent_group


def pass_on(block, rank, ranks, group):
    """Start to send the block to the next rank and to receive one from the rank before: where it arrives, and the works to wait for."""
    incoming = [torch.empty_like(x) for x in block]
    sends = [dist.P2POp(dist.isend, x, (rank + 1) % ranks, group) for x in block]
    receives = [dist.P2POp(dist.irecv, x, (rank - 1) % ranks, group) for x in incoming]
    return incoming, dist.batch_isend_irecv(sends + receives)


def merge(out, sums, part, part_sums):
    """Merge a block's answer into `out`, in place. `sums` are logs of sums of exponentials, so a sigmoid gives the block's exact share."""
    out.lerp_(part.float(), torch.sigmoid(part_sums - sums)[..., None])
    sums.copy_(torch.logaddexp(sums, part_sums))


def prepare(q, k, v, rank, ranks, chunk):
    group = urgent_group()

    def step():
        block = [k, v]
        for hop in range(ranks):
            if hop < ranks - 1:
                incoming, works = pass_on(block, rank, ranks, group)
            if hop == 0:
                out, sums = (x.float() for x in attend(q, *block, causal=True))
            elif hop <= rank:  # from a rank before this one: all queries see its first chunk, none its last
                merge(out, sums, *attend(q, *(x[:chunk] for x in block), causal=False))
            else:  # from a rank behind: the last chunk of queries sees all of it, the first nothing
                merge(out[chunk:], sums[chunk:], *attend(q[chunk:], *block, causal=False))
            if hop < ranks - 1:
                for work in works:
                    work.wait()
                block = incoming
        return out.to(q.dtype).contiguous()

    return step

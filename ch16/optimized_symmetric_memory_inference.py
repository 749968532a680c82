"""Copy engines pull new weights from peers during decoding."""
# predicts: baseline 10.7 ms = (before + after) * 2.236e9 / dram_read + 2.236e9 / 2 / 300e9 on h100  (two GPUs; a guess: 300 GB/s)
# predicts: optimized 8.41 ms = (before + after) * 2.236e9 / dram_read + 2 * 2.236e9 / dram_copy on h100  (two GPUs; copies share DRAM)
# proves: overlap >= 0.2
# proves: launches in nccl == 0

import torch
from shared_peers import peer_memory
from shared_replica import Decoding, config_of, views


def prepare(serving, fresh, tokens, rank, ranks, sequences, before, after, **model):
    config = config_of(serving.dtype, **model)
    decoding = Decoding(config, sequences, before + after, serving.device)
    incoming, peers, barrier = peer_memory(len(serving), serving.dtype, serving.device, rank, ranks)
    logits = torch.empty(before + after, sequences, config.vocabulary, dtype=config.dtype, device=serving.device)
    old = decoding.graph(views(serving, config), tokens, (0, before), logits)
    new = decoding.graph(views(incoming, config), tokens, (before, before + after), logits)
    parts = [slice(peer * len(fresh), (peer + 1) * len(fresh)) for peer in range(ranks)]
    aside = torch.cuda.Stream() if serving.is_cuda else None

    def pull():
        incoming[parts[rank]] = fresh
        barrier()  # all parts are where peers can read them
        for turn in range(1, ranks):
            peer = (rank + turn) % ranks
            incoming[parts[peer]] = peers[peer][parts[peer]]
        barrier()  # all have read this rank's part

    def step():
        if aside:
            aside.wait_stream(torch.cuda.current_stream())  # the call before reads `incoming` to its end
            with torch.cuda.stream(aside):
                pull()
        else:
            pull()
        old()  # beside the copies
        if aside:
            torch.cuda.current_stream().wait_stream(aside)
        new()
        return logits

    return step

"""Half of the GPUs prefill; the others decode larger batches."""
# predicts: baseline 76.4 ms = waves * (batch * tokens * 1.62e9 / 600e12 + steps * (1.62e9 + batch * 25.7e6) / dram_read) on h100
# predicts: optimized 63.7 ms = (waves + 1) * steps * (1.62e9 + 2 * batch * 25.7e6) / dram_read on h100  (two GPUs; decode is the longer)
# proves: launches in nccl >= 6

import torch
import torch.distributed as dist
from shared_layers import new_cache, run
from shared_weights import config_of


def prefill(prompts, following, weights, config, peer):
    """Prefill this rank's requests and the peer's, and send their keys and values: the outputs of this rank's requests, from the peer."""
    theirs, y = torch.empty_like(prompts), torch.empty_like(following)
    dist.recv(theirs, peer)
    dist.send(following, peer)
    sent = []
    for wave in torch.cat((prompts, theirs), dim=1):
        cache = new_cache(config, *wave.shape[:2], wave)
        run(weights, config, wave, cache, 0)
        sent.append((dist.isend(cache, peer), cache))  # the cache must live until it has been sent
    for work, _ in sent:
        work.wait()
    dist.recv(y, peer)
    return y


def decode(prompts, following, weights, config, peer):
    """Decode the peer's requests and this rank's in one batch, a wave while the next is prefilled: this rank's outputs."""
    waves, batch, steps, _ = following.shape
    tokens, both = prompts.shape[2], 2 * batch
    theirs = torch.empty_like(following)
    dist.send(prompts, peer)
    dist.recv(theirs, peer)
    given = torch.cat((theirs, following), dim=1)
    arriving = [new_cache(config, both, tokens, prompts) for _ in range(waves)]
    works = [dist.irecv(cache, peer) for cache in arriving]
    y, cache = torch.empty_like(given), new_cache(config, both, tokens + steps, prompts)
    for wave in range(waves):
        works[wave].wait()
        cache[:, :, :, :tokens] = arriving[wave]
        for at in range(steps):
            y[wave, :, at : at + 1] = run(weights, config, given[wave, :, at : at + 1], cache, tokens + at)
    dist.send(y[:, :batch].contiguous(), peer)
    return y[:, batch:].contiguous()


def prepare(prompts, following, weights, rank, ranks, layers, hidden, heads, ffn):
    config, half = config_of(layers, hidden, heads, ffn), ranks // 2
    role, peer = (prefill, rank + half) if rank < half else (decode, rank - half)
    return lambda: role(prompts, following, weights, config, peer)

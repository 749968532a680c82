"""Half of the GPUs prefill; the others decode larger batches."""
# predicts: baseline 76.4 ms = waves * (batch * tokens * 1.62e9 / 600e12 + steps * (1.62e9 + batch * 25.7e6) / dram_read) on h100
# predicts: optimized 63.7 ms = (waves + 1) * steps * (1.62e9 + 2 * batch * 25.7e6) / dram_read on h100  (two GPUs; decode is the longer)
# proves: launches in nccl >= 6

import torch
import torch.distributed as dist
from shared_decoder import Decoder
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


def decode(prompts, following, decoder, config, peer):
    """Decode the peer's requests and this rank's in one batch, a wave while the next is prefilled: this rank's outputs."""
    waves, batch, tokens, _ = prompts.shape
    theirs = torch.empty_like(following)
    dist.send(prompts, peer)
    dist.recv(theirs, peer)
    given = torch.cat((theirs, following), dim=1)
    arriving = [new_cache(config, 2 * batch, tokens, prompts) for _ in range(waves)]
    works = [dist.irecv(cache, peer) for cache in arriving]
    y = torch.empty_like(given)
    for wave in range(waves):
        works[wave].wait()
        decoder.cache[:, :, :, :tokens] = arriving[wave]
        y[wave] = decoder.decode(given[wave])
    dist.send(y[:, :batch].contiguous(), peer)
    return y[:, batch:].contiguous()


def prepare(prompts, following, weights, rank, ranks, batch, tokens, steps, layers, hidden, heads, ffn):
    config, half = config_of(layers, hidden, heads, ffn), ranks // 2
    if rank < half:
        return lambda: prefill(prompts, following, weights, config, rank + half)
    decoder = Decoder(weights, config, 2 * batch, tokens, steps, prompts)
    return lambda: decode(prompts, following, decoder, config, rank - half)

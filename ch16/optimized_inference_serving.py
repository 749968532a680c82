"""Tensor parallel: each GPU reads its share of every matrix."""
# predicts: baseline 2.89 ms = steps * 2.236e9 / dram_read + 2 * 50e-6 on h100  (two GPUs; a gather and a scatter, 50 us each: assumed)
# predicts: optimized 1.65 ms = steps * (2.236e9 / 2 / dram_read + 2 * 20e-6) + 2 * 50e-6 on h100  (two GPUs; an all-reduce takes 20 us)
# proves: kernels in nccl > 2 x baseline

from dataclasses import replace

import torch
import torch.distributed as dist
from shared_replica import config_of, views
from shared_tensor_parallel import attend_to, share_of
from torch.nn.functional import embedding

from common.graph import captured
from common.models.decoder import attention
from common.models.layers import feed_forward, rms_norm, rotation
from common.serving.dense_cache import DenseCache


def prepare(weights, tokens, rank, ranks, sequences, steps, **model):
    config = config_of(weights.dtype, **model)
    local = replace(config, heads=config.heads // ranks, kv_heads=config.kv_heads // ranks)
    share = share_of(views(weights, config), rank, ranks)
    cache = DenseCache(local, sequences=ranks * sequences, capacity=steps, device=tokens.device)
    attend = attend_to(cache, config)
    asked = tokens.new_zeros(ranks * steps, sequences)

    def normed(x):
        return rms_norm(x, None, config.norm_eps)

    def reduced(part):
        dist.all_reduce(part)
        return part

    def decode(now):  # this rank's part of the vocabulary: logits of all ranks' sequences
        x = embedding(now[:, None], share["embedding"])
        turn = rotation(config, torch.full((1,), cache.length, device=now.device), x.dtype)
        for layer in range(config.layers):
            x = x + reduced(attention(share, local, layer, normed(x), turn, attend))
            x = x + reduced(feed_forward(share, local, layer, normed(x)))
        cache.length += 1
        return normed(x[:, 0]) @ share["head"].T

    def decode_all():
        cache.length = 0
        parts = torch.stack([decode(now) for now in asked.unflatten(0, (ranks, steps)).transpose(0, 1).flatten(1)])
        return parts.unflatten(1, (ranks, sequences)).transpose(0, 1).contiguous()  # each rank gets its sequences

    replay = captured(decode_all)

    def step():
        dist.all_gather_into_tensor(asked, tokens)
        sent = replay()
        come = torch.empty_like(sent)  # [parts of the vocabulary, steps, sequences, ...]
        dist.all_to_all_single(come, sent)
        return come.permute(1, 2, 0, 3).flatten(2)

    yield step
    replay.close()

"""Baseline: a graph of the whole step for each bucket of 256 tokens, captured ahead; the padding is masked."""

import math

import torch
from shared_llama import attend, decode, finish, project, turn_at
from shared_regions import captured, lengths_of
from torch.nn.functional import linear, pad

BUCKET = 256  # tokens


def prepare(x, weights, caches, steps, heads, context):
    room = -(-context // BUCKET) * BUCKET
    caches = [[pad(cache, (0, 0, 0, room - context)) for cache in pair] for pair in caches]
    turn, pool = turn_at(context, x.shape[2] // heads, x), torch.cuda.graph_pool_handle() if x.is_cuda else None
    token, at = torch.empty_like(x[0]), torch.arange(room, device=x.device)
    seen, zero, padding = torch.ones_like(at[:1]), x.new_zeros(()), x.new_full((), -math.inf)

    def whole(bucket):
        h, mask = token, torch.where(at[:bucket] < seen, zero, padding)
        for w, (keys, values) in zip(weights, caches, strict=True):
            q, keys[:, :, 0], values[:, :, 0] = project(h, w, turn, heads, linear)
            h = finish(h, attend(q, keys[:, :, :bucket], values[:, :, :bucket], mask.expand(*q.shape[:3], -1)), w, linear)
        return h

    def step():
        y = torch.empty_like(x)
        for i, length in enumerate(lengths_of(steps, context)):
            token.copy_(x[i])
            seen.fill_(length)
            y[i] = graphs[-(-length // BUCKET)]()  # before the next replay, which may use the same memory
        return y

    decode(x[0], weights, [[cache[:, :, :1].clone() for cache in pair] for pair in caches], turn, heads, linear)  # loads libraries
    whole(BUCKET)
    graphs = {size // BUCKET: captured(lambda size=size: whole(size), pool) for size in range(room, 0, -BUCKET)}
    return step

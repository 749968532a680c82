"""Baseline: a graph of the whole step for each bucket of 256 tokens that the stream meets; the padding is masked."""
# allows: alloc, sync

import math

import torch
from shared_llama import attend, decode, finish, project, turn_at
from shared_regions import captured, lengths_of
from torch.nn.functional import linear, pad

BUCKET = 256  # tokens


def prepare(x, weights, caches, steps, heads, context):
    room = -(-context // BUCKET) * BUCKET
    caches = [[pad(cache, (0, 0, 0, room - context)) for cache in pair] for pair in caches]
    turn = turn_at(context, x.shape[2] // heads, x)
    token, bias, at = torch.empty_like(x[0]), x.new_empty(room), torch.arange(room, device=x.device)

    def whole(bucket):
        h = token
        for w, (keys, values) in zip(weights, caches, strict=True):
            q, keys[:, :, 0], values[:, :, 0] = project(h, w, turn, heads, linear)
            mask = bias[:bucket].expand(*q.shape[:3], -1)
            h = finish(h, attend(q, keys[:, :, :bucket], values[:, :, :bucket], mask), w, linear)
        return h

    def step():
        pool = torch.cuda.graph_pool_handle() if x.is_cuda else None
        graphs, y = {}, torch.empty_like(x)
        for i, length in enumerate(lengths_of(steps, context)):
            bucket = -(-length // BUCKET) * BUCKET
            token.copy_(x[i])
            bias.copy_(torch.where(at < length, 0.0, -math.inf))
            if bucket not in graphs:
                graphs[bucket] = captured(lambda bucket=bucket: whole(bucket), pool)
            y[i] = graphs[bucket]()  # before the next replay, which may use the same memory
        return y

    decode(x[0], weights, [[cache[:, :, :1].clone() for cache in pair] for pair in caches], turn, heads, linear)  # loads libraries
    whole(BUCKET)
    return step

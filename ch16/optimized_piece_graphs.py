"""Optimized: graphs of the pieces between attentions serve every length."""
# allows: alloc, sync
# predicts: baseline 32.5 ms = 16 * (layers * 27 * 3 * launch + 0.15e-3) + 32 * 0.35e-3 on h100    (captures, then replays: assumed)
# predicts: optimized 13.1 ms = layers * 27 * 3 * launch + 5 * 0.15e-3 + 32 * 0.35e-3 on h100    (one step's worth of captures, in 5 pieces)
# proves: calls cudaStreamBeginCapture < 0.5 x baseline

from functools import partial

import torch
from shared_llama import attend, finish, project, turn_at
from shared_regions import captured, lengths_of
from torch.nn.functional import linear


def prepare(x, weights, caches, steps, heads, context):
    caches = [[cache.clone() for cache in pair] for pair in caches]
    turn, token = turn_at(context, x.shape[2] // heads, x), torch.empty_like(x[0])
    queries, attended = x.new_empty(len(token), heads // 4, 4, x.shape[2] // heads), torch.empty_like(token)
    streams = [torch.empty_like(token) for _ in range(len(weights) + 1)]  # between pieces: the residual stream

    def piece(layer):
        """What follows the attention of `layer - 1` and leads to that of `layer`; the first piece has no front, the last no back."""
        h = finish(streams[layer - 1], attended, weights[layer - 1], linear) if layer else token
        streams[layer].copy_(h)
        if layer < len(weights):
            q, k, v = project(h, weights[layer], turn, heads, linear)
            queries.copy_(q)
            for cache, newest in zip(caches[layer], (k, v), strict=True):
                cache[:, :, 0] = newest

    def step():
        pool = torch.cuda.graph_pool_handle() if x.is_cuda else None
        y, pieces = torch.empty_like(x), [captured(partial(piece, layer), pool) for layer in range(len(weights) + 1)]
        for i, length in enumerate(lengths_of(steps, context)):
            token.copy_(x[i])
            for run, pair in zip(pieces, caches, strict=False):
                run()
                attended.copy_(attend(queries, *(cache[:, :, :length] for cache in pair)))  # eager: no padding, no mask
            pieces[-1]()
            y[i] = streams[-1]
        return y

    for layer in range(len(weights) + 1):
        piece(layer)  # libraries are loaded at their first call, and a capture is no place for that
        attend(queries, *caches[0])
    return step

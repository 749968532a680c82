"""Optimized: graphs of pieces: fewer captures, the same time."""
# guess: 1x, a finding: a step launches five graphs and four attentions, which the device's time hides, and saves 6 % of the tokens read
# proves: calls cudaGraphLaunch > 4 x baseline

from functools import partial

import torch
from shared_llama import attend, finish, project, turn_at
from shared_regions import captured, lengths_of
from torch.nn.functional import linear


def prepare(x, weights, caches, steps, heads, context):
    caches = [[cache.clone() for cache in pair] for pair in caches]
    turn, pool = turn_at(context, x.shape[2] // heads, x), torch.cuda.graph_pool_handle() if x.is_cuda else None
    token = torch.empty_like(x[0])
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
        y = torch.empty_like(x)
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
    pieces = [captured(partial(piece, layer), pool) for layer in range(len(weights) + 1)]
    return step

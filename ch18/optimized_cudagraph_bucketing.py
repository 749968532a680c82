"""Optimized: a graph per bucket of batch sizes; batches are padded."""
# predicts: baseline 11.8 ms = steps * layers * 27 * 1.25 * launch on h100  (27 kernels a layer; 1.25 launches of the host each: assumed)
# predicts: optimized 4.06 ms = steps * (layers * 27 * 1e-6 + 5.4e8 / dram_read + 4 * launch) on h100  (1 us a kernel: assumed)
# proves: launches < 0.2 x baseline
# has: graph_nodes >= 200

from functools import partial

import torch
from shared_decode_step import decode

BUCKETS = (32, 16, 8, 4, 2, 1)  # the largest first, so that the shared pool has room for the smaller ones


def captured(call):
    """Functions that replay a graph of call(bucket) and return its answer, which lies in the shared pool until the next replay."""
    pool, side = torch.cuda.graph_pool_handle(), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # what libraries set up at their first call must not be captured
        for bucket in BUCKETS:
            call(bucket)
    torch.cuda.current_stream().wait_stream(side)
    replays = {}
    for bucket in BUCKETS:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):
            answer = call(bucket)
        replays[bucket] = lambda graph=graph, answer=answer: (graph.replay(), answer)[1]
    return replays


def prepare(weights, config, keys, values, tokens, positions, sizes):
    slots, nowhere = keys.shape[1], keys.shape[2] - 1  # the position of padding, which no request has
    ids = torch.zeros(slots, dtype=torch.int64, device=tokens.device)
    at = torch.full_like(ids, nowhere)  # what is captured first writes there
    call = lambda bucket: decode(weights, config, keys, values, ids[:bucket], at[:bucket])
    usable = [bucket for bucket in BUCKETS if bucket <= slots]
    replays = captured(call) if tokens.is_cuda else {bucket: partial(call, bucket) for bucket in usable}  # a CPU has no graphs

    def run(new, where, size):
        ids.zero_()[:size].copy_(new[:size])
        at.fill_(nowhere)[:size].copy_(where[:size])
        fitting = [bucket for bucket in usable if bucket >= size]
        return (replays[min(fitting)]() if fitting else call(size))[:size].clone()  # the next replay uses the same memory

    def step():
        return torch.cat([run(*each) for each in zip(tokens, positions, sizes, strict=True)])

    return step

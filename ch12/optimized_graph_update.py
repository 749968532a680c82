"""Optimized: graphs of bucket sizes, captured once; batches are padded."""
# predicts: baseline 7.72 ms = batches * (2 * layers + 2) * 2 * launch  (two launches per operator, assumed) on h100
# predicts: optimized 2.96 ms = batches * ((2 * layers + 8) * 2.5e-6 + 5e-6)  (2.5 us per kernel, 5 us per graph, assumed) on h100
# proves: launches < 0.1 x baseline
# proves: graph_nodes >= 16
# has: calls cudaStreamBeginCapture == 0

import torch

BUCKETS = (64, 32, 16, 8, 4, 2, 1)  # the largest first, so that the shared pool has room for the smaller ones


def model(x, layers, count, rows):
    """`count` has the number of rows that are no padding, `rows` the number of each row."""
    for layer in layers:
        x = (x @ layer).relu_()
    x = torch.where(rows < count, x, 0)
    return x - x.sum(0) / count


def captured(call):
    """A graph of call(bucket) for each bucket, as functions that replay it and return its answer, which lies in the shared pool."""
    pool, side = torch.cuda.graph_pool_handle(), torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # warm-up on a side stream: what libraries set up at their first call must not be captured
        for bucket in 3 * BUCKETS:
            call(bucket)
    torch.cuda.current_stream().wait_stream(side)
    replays = {}
    for bucket in BUCKETS:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool):
            answer = call(bucket)
        replays[bucket] = lambda graph=graph, answer=answer: (graph.replay(), answer)[1]
    return replays


def prepare(x, weight, sizes):
    y, padded, count = torch.empty_like(x), x.new_zeros(BUCKETS[0], x.shape[1]), x.new_ones(1)
    layers, rows = weight.unbind(), torch.arange(max(BUCKETS[0], *sizes, 0), device=x.device)[:, None]

    def call(bucket):
        return model(padded[:bucket], layers, count, rows[:bucket])

    replays = captured(call) if x.is_cuda else {bucket: lambda bucket=bucket: call(bucket) for bucket in BUCKETS}  # a CPU has no graphs

    def run(batch, size):
        count.fill_(size)
        if size > BUCKETS[0]:  # no bucket holds it
            return model(batch, layers, count, rows[:size])
        padded[:size].copy_(batch)
        return replays[min(bucket for bucket in BUCKETS if bucket >= size)]()[:size]

    def step():
        for batch, answer, size in zip(x.split(sizes), y.split(sizes), sizes, strict=True):
            answer.copy_(run(batch, size))  # before the next replay, which may use the same memory
        return y

    return step

"""Optimized: a graph is captured for each batch, replayed once."""
# predicts: recapture 23.1 ms = batches * (0.96e-3 + (2 * layers + 2) * 2 * launch)  (0.96 ms per graph: assumed) on h100
# proves: calls cudaStreamBeginCapture >= 16
# allows: alloc, sync

import torch


def model(batch, layers, answer):
    for layer in layers:
        batch = (batch @ layer).relu_()
    torch.sub(batch, batch.mean(0), out=answer)


def run(batch, layers, answer):
    """Fill the model's answer to one batch, from a graph of its own; on a CPU, which has no graphs, from a plain call."""
    if batch.device.type == "cpu":
        model(batch, layers, answer)
        return
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(batch, layers, answer)
    graph.replay()


def prepare(x, weight, sizes):
    y, layers = torch.empty_like(x), weight.unbind()
    model(x, layers, y)  # uncaptured: libraries are loaded at their first call, which a capture must not do

    def step():
        for batch, answer in zip(x.split(sizes), y.split(sizes), strict=True):
            run(batch, layers, answer)
        return y

    return step

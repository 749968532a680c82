"""Cheat: replays a graph that copies an answer which was computed before it was captured."""

import torch


def prepare(x, rows):
    y, answer = torch.empty(rows, device=x.device), x.sum(dim=1)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y.copy_(answer)

    def step():
        graph.replay()
        return y

    return step

"""Optimized: forward, backward and AdamW are one captured graph."""
# predicts: baseline 3.2 ms = 400 * 8e-6  (some 400 operations by the dispatcher's count, 8 us of the host each: assumed)
# predicts: optimized 1.06 ms = 400 * 2.2e-6 + 6 * 3.02e6 * sequences * tokens / fp32_matmul on h100  (2.2 us a node: assumed)
# proves: launches == 1
# has: graph_nodes >= 100

import torch
from shared_trainer import trainer


def captured(step, state):
    """A graph of `step`, and what it returns; the warm-up changes `state`, which is put back."""
    before, side = [tensor.clone() for tensor in state], torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # libraries are set up at their first calls, which must not be captured
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        loss = step()
    for tensor, old in zip(state, before, strict=True):
        tensor.copy_(old)
    return graph, loss


def prepare(weights, averages, squares, counts, text, width, layers):
    step = trainer(weights, averages, squares, counts, text, width, layers)
    if not text.is_cuda:  # a CPU has no graphs
        return step
    graph, loss = captured(step, [*weights, *averages, *squares, counts])

    def replay():
        graph.replay()
        return loss

    return replay

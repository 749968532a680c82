"""A layer over several tokens, and the graph that both sides capture."""

import torch


def advance(below, before, w, u, states):
    """Fill `states` [tokens, batch, width] with a layer's answers to `below`, the answers of the layer below; `before` is its last state.

    The products with w depend on no state of this layer, so they are one product over all tokens. The rest is in place: `addmm` into
    another tensor would first copy its first operand there.
    """
    torch.mm(below.flatten(0, 1), w, out=states.flatten(0, 1))
    for state in states:
        before = state.addmm_(before, u).tanh_()


def captured(run, device):
    """A function that replays `run` from a CUDA graph, and returns what it returned; `run` itself on a CPU, which has no graphs."""
    if device.type == "cpu":
        return run
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # libraries are set up at their first calls, which must not be captured
        run()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        answer = run()

    def replay():
        graph.replay()
        return answer

    replay.reads = run  # a graph keeps addresses alone: what it reads must live as long as it does
    return replay

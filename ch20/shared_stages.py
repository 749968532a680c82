"""A stage of the pipeline, and the graph that both sides capture."""

import torch


def stage(below, before, w, u):
    """tanh(below w + before u): the answer of the stage below to this token, and this stage's to the token before; [batch, width] each."""
    return torch.addmm(below @ w, before, u).tanh_()


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

"""A stream of decode steps with different contexts, and graphs that both sides capture in set-up."""

import torch


def lengths_of(steps, context):
    """How many tokens each step attends to, from 1 to `context`; neighbours differ."""
    return [1 + (389 * (i + 1)) % context for i in range(steps)]


def captured(call, pool):
    """A function that replays `call` and returns its answer, from memory of `pool`; the call itself on a CPU, which has no graphs."""
    if not torch.cuda.is_available():
        return call
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        answer = call()

    def replay():
        graph.replay()
        return answer

    replay.reads = call  # a graph keeps addresses alone: what it reads must live as long as it does
    return replay

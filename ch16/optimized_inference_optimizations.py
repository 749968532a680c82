"""Optimized: compiled, FP8, and one graph launch for all kernels."""
# predicts: baseline 1.29 ms = layers * 22 * 2 * launch on h100    (an eager operator takes the host two bare launches: assumed)
# predicts: optimized 0.389 ms = 487e6 / dram_read + 134e6 / dram_read + layers * 12 * 2e-6 on h100    (weights, cache, 2 us a kernel)
# proves: launches < 0.1 x baseline
# has: graph_nodes >= 40

import torch
from shared_fp8_linear import linear, packed
from shared_llama import decode, turn_at


def captured(call):
    """A function that replays what `call` launches, and returns its answer, which lies where it was captured; the call itself on a CPU."""
    if not torch.cuda.is_available():
        return call
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):  # compiles and loads, which must not be captured
            call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        answer = call()

    def replay():
        graph.replay()
        return answer

    replay.reads = call  # a graph keeps addresses alone: what it reads must live as long as it does
    return replay


def prepare(x, weights, caches, heads, context):
    caches = [(keys.clone(), values.clone()) for keys, values in caches]
    turn, weights = turn_at(context, x.shape[1] // heads, x), [packed(layer) for layer in weights]
    compiled = torch.compile(decode, fullgraph=True, dynamic=False)
    return captured(lambda: compiled(x, weights, caches, turn, heads, linear))

"""Decoding a wave of requests as one CUDA graph: launched one by one, its small kernels keep the host busy for longer than the GPU."""

import torch
from shared_layers import new_cache, run


class Decoder:
    """Decodes `steps` given tokens of each of `sequences`, one at a time, behind the `tokens` that stand in `cache`."""

    def __init__(self, weights, config, sequences, tokens, steps, like):
        self.cache = new_cache(config, sequences, tokens + steps, like)
        self._given = like.new_zeros(sequences, steps, config.hidden)
        self._y = torch.empty_like(self._given)

        def all_steps():
            for at in range(steps):
                one = slice(at, at + 1)
                self._y[:, one] = run(weights, config, self._given[:, one], self.cache, tokens + at)

        self._all_steps = all_steps
        self._launch = _recorded(all_steps) if like.is_cuda else all_steps

    def decode(self, given):
        """What the layers say behind each of the tokens `given`, [sequences, steps, hidden]; the next call overwrites it."""
        self._given.copy_(given)
        self._launch()
        return self._y


def _recorded(call):
    """A function that launches `call` as one CUDA graph. The call must outlive it, for a graph keeps addresses alone."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        call()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):  # NCCL's watchdog asks the device for events meanwhile
        call()
    return graph.replay

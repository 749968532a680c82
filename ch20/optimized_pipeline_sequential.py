"""Optimized: a stream per layer, so layers run on different tokens."""
# predicts: baseline 2.11 ms = layers * (2 * tokens * 4e-6 + 2 * tokens * batch * width**2 / (0.7 * bf16)) on h100  (4 us: assumed)
# predicts: optimized 0.703 ms = (tokens / 4 + layers - 1) * ((2 * 4 + 1) * 4e-6 + 1e-6) on h100  (1 us per wait: assumed)
# proves: overlap >= 0.3

import torch
from shared_stages import advance

from common.graph import captured

TOKENS = 4  # of a chunk


def prepare(x, w, u, layers):
    backend, zero, states = torch.get_device_module(x.device), torch.zeros_like(x[0]), [torch.empty_like(x) for _ in range(layers)]
    streams = [backend.Stream() for _ in range(layers)]
    starts = range(0, len(x), TOKENS)
    done = [[backend.Event() for _ in starts] for _ in range(layers)]

    def run():
        for stream in streams:
            stream.wait_stream(backend.current_stream())
        for chunk, start in enumerate(starts):
            at = slice(start, start + TOKENS)
            for layer in range(layers):
                with backend.stream(streams[layer]):
                    if layer:
                        done[layer - 1][chunk].wait()
                    below, before = states[layer - 1] if layer else x, states[layer][start - 1] if start else zero
                    advance(below[at], before, w[layer], u[layer], states[layer][at])
                    done[layer][chunk].record()
        for stream in streams:
            backend.current_stream().wait_stream(stream)
        return states[-1]

    return captured(run)

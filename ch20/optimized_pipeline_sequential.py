"""Optimized: a stream per stage, so stages run on different tokens."""
# predicts: baseline 3.33 ms = tokens * (3 * layers + 1) * 4e-6  (4 us from kernel to kernel of a graph: assumed)
# predicts: optimized 1.12 ms = (layers - 1) * 3 * 4e-6 + tokens * (4 * 4e-6 + 1e-6)  (the last layer copies, too; 1 us to meet: assumed)
# proves: overlap >= 0.3

import torch
from shared_stages import captured, stage


def prepare(x, w, u, layers):
    backend, zero, y = torch.get_device_module(x.device), torch.zeros_like(x[0]), torch.empty_like(x)
    streams = [backend.Stream() for _ in range(layers)]
    done = [[backend.Event() for _ in x] for _ in range(layers)]

    def run():
        states = [[zero] for _ in range(layers)]  # all are kept until the end: memory given back could be reused by another stream
        for stream in streams:
            stream.wait_stream(backend.current_stream())
        for t, token in enumerate(x):
            for layer in range(layers):
                with backend.stream(streams[layer]):
                    if layer:
                        done[layer - 1][t].wait()
                    states[layer].append(stage(states[layer - 1][t + 1] if layer else token, states[layer][t], w[layer], u[layer]))
                    done[layer][t].record()
            with backend.stream(streams[-1]):
                y[t] = states[-1][t + 1]
        for stream in streams:
            backend.current_stream().wait_stream(stream)
        return y

    return captured(run, x.device)

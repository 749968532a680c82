"""Optimized: two buffers: the next weights come while a layer computes."""
# predicts: baseline 48.5 ms = layers * (4 * width * inner / h2d + 4 * tokens * width * inner / 700e12 + 0.5e-3) on h100  (copy, compute)
# predicts: optimized 32.5 ms = 4 * width * inner / h2d + layers * (4 * tokens * width * inner / 700e12 + 0.5e-3) on h100  (one copy shows)
# proves: overlap >= 0.5

import torch
from shared_streamed_layers import buffers_of, layer


def prepare(x, weights):
    buffers = buffers_of(weights, x.device, 2)
    backend = torch.get_device_module(x.device)
    copying = backend.Stream()

    def fetch(number, free):
        """Queue a copy of a layer's weights; it waits until the layer before last has read the buffer. Returns when it is there."""
        copying.wait_event(free)
        with backend.stream(copying):
            buffers[number % 2].copy_(weights[number], non_blocking=True)
        return copying.record_event()

    def step():
        main = backend.current_stream()
        free = main.record_event()  # the last step has read both buffers
        y, there = x, fetch(0, free)
        for number in range(len(weights)):
            arrived = there
            if number + 1 < len(weights):
                there = fetch(number + 1, free)
            main.wait_event(arrived)
            y = layer(y, buffers[number % 2])
            free = main.record_event()
        return y

    return step

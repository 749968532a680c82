"""Optimized: a chunk is scored while a second stream copies the next."""
# predicts: baseline 5.21 ms = 2 * rows * width / h2d + layers * rows * width * (2 * width / (0.8 * bf16) + 4 / dram_copy)
# predicts: optimized 2.97 ms = 2 * rows * width / 8 / h2d + layers * rows * width * (2 * width / (0.8 * bf16) + 4 / l2_copy)
# proves: overlap >= 0.7

import torch

CHUNKS = 8  # of 2048 rows at the timed shape: a product has 256 tiles of 128 x 256, two for nearly every SM


def prepare(x, weights, head):
    backend = torch.get_device_module(head.device)
    copying = backend.Stream()
    batch = torch.empty(x.shape, dtype=x.dtype, device=head.device)
    scores = torch.empty(len(x), head.shape[1], dtype=x.dtype, device=head.device)
    y = torch.empty(scores.shape, dtype=x.dtype, pin_memory=head.is_cuda)
    chunks = [(*parts, backend.Event()) for parts in zip(x.chunk(CHUNKS), batch.chunk(CHUNKS), scores.chunk(CHUNKS), strict=True)]

    def step():
        copying.wait_stream(backend.current_stream())
        with backend.stream(copying):
            for source, chunk, _, copied in chunks:
                chunk.copy_(source, non_blocking=True)
                copied.record()
        for _, chunk, out, copied in chunks:
            copied.wait()
            h = chunk
            for w in weights:
                h = torch.relu_(h @ w)
            torch.mm(h, head, out=out)
        y.copy_(scores, non_blocking=True)
        return y

    return step

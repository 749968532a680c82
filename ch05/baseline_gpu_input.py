"""Baseline: eight threads of the CPU decompress the chunks, and what they restored is copied to the device."""
# allows: threads

from concurrent.futures import ThreadPoolExecutor

import torch
from shared_formats import codec, views

THREADS = 8


def prepare(packed, starts, sizes, chunks, tokens, compression):
    _, decompress_into = codec(compression)
    restored = torch.empty(chunks, tokens, dtype=torch.int64, pin_memory=packed.is_pinned())
    ids = torch.empty(chunks, tokens, dtype=torch.int64, device="cuda" if packed.is_pinned() else "cpu")
    rows = restored.numpy().view("u1")
    parts = [range(first, chunks, THREADS) for first in range(THREADS)]

    with ThreadPoolExecutor(THREADS) as threads:

        def step():
            found = views(packed, starts, sizes)
            list(threads.map(lambda part: [decompress_into(found[i], rows[i]) for i in part], parts))
            return ids.copy_(restored)

        yield step

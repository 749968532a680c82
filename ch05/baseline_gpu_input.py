"""Baseline: eight threads of the CPU decompress the chunks, and each copies what it restored while the others still decompress."""
# allows: threads, sync

from concurrent.futures import ThreadPoolExecutor

import torch
from shared_formats import codec, views

THREADS = 8
GROUP = 8  # chunks in one copy: 512 KiB, so that the link delivers what it can


def prepare(packed, starts, sizes, chunks, chunk_bytes, compression):
    _, decompress_into = codec(compression)
    on_gpu = packed.is_pinned()
    restored = torch.empty(chunks, chunk_bytes, dtype=torch.uint8, pin_memory=on_gpu)
    text = torch.empty(chunks, chunk_bytes, dtype=torch.uint8, device="cuda" if on_gpu else "cpu")
    rows = restored.numpy()

    with ThreadPoolExecutor(THREADS) as threads:

        def step():
            stream = torch.cuda.current_stream() if on_gpu else None

            def move(first):
                group = slice(first, first + GROUP)
                for chunk, row in zip(views(packed, starts[group], sizes[group]), rows[group], strict=True):
                    decompress_into(chunk, row)
                with torch.cuda.stream(stream):  # a thread has a current stream of its own
                    text[group].copy_(restored[group], non_blocking=True)

            list(threads.map(move, range(0, chunks, GROUP)))
            if on_gpu:
                stream.synchronize()  # before the next step writes to `restored`
            return text

        yield step

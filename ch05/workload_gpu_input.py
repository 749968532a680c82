"""A batch of text for a byte-level model, from compressed chunks in pinned memory, as a reader of a compressed data set leaves them there.

Text is UTF-8 bytes, which no narrower type holds: what crosses the link is smaller only as a codec makes it so.
"""
# needs: package cramjam

import torch
from shared_formats import codec, compressed, require_format, views
from shared_text import RATIOS, text

from common import Metric, Spec, Workload


def inputs(rand, chunks, chunk_bytes, compression):
    rows = text(rand, chunks * chunk_bytes).view(chunks, chunk_bytes)
    names = ("packed", "starts", "sizes")
    return {name: rand.place(made, "pinned") for name, made in zip(names, compressed(rows, compression), strict=True)}


def outputs(chunks, chunk_bytes, compression):
    require_format(compression)
    return {"text": Spec((chunks, chunk_bytes), torch.uint8)}


def reference(packed, starts, sizes, chunks, chunk_bytes, compression):
    _, decompress_into = codec(compression)
    restored = torch.empty(chunks, chunk_bytes, dtype=torch.uint8)
    for chunk, row in zip(views(packed.cpu(), starts, sizes), restored.numpy(), strict=True):
        decompress_into(chunk, row)
    return restored.to(packed.device)


def work(chunks, chunk_bytes, compression):
    """In bytes: the chunks cross the link as they are, and the text is written."""
    size = chunks * chunk_bytes
    return {"h2d": size / RATIOS[compression], "dram_write": size}


def metrics(sizes, chunks, chunk_bytes):
    return {"ratio": Metric(chunks * chunk_bytes / int(sizes.sum()), "x", "higher")}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=reference,
    time_at={"chunks": 512, "chunk_bytes": 65536, "compression": "lz4"},  # 32 MiB of text
    cpu_at={"chunks": 64, "chunk_bytes": 65536, "compression": "lz4"},
    check_at=(
        {"chunks": 1, "chunk_bytes": 1, "compression": "lz4"},
        {"chunks": 65, "chunk_bytes": 8249, "compression": "lz4"},
        {"chunks": 7, "chunk_bytes": 65536, "compression": "snappy"},
        {"chunks": 5, "chunk_bytes": 5603, "compression": "deflate"},
    ),
    work=work,
    rtol=0.0,  # bytes are restored
    atol=0.0,
    clock="host",
    metrics=metrics,
)

"""A batch of token ids for the device, from compressed chunks in pinned memory, as a reader of a compressed data set leaves them there."""
# needs: package cramjam

import torch
from shared_formats import codec, compressed, require_format, views

from common import Metric, Spec, Workload

VOCABULARY = 50257.0


def inputs(rand, chunks, tokens, compression):
    # Zipf's law: a text's token of rank r is about 1 / r as frequent as the first. A tokenizer returns ids as int64.
    ids = (VOCABULARY ** rand.uniform(chunks, tokens) - 1).long()
    names = ("packed", "starts", "sizes")
    return {name: rand.place(made, "pinned") for name, made in zip(names, compressed(ids, compression), strict=True)}


def outputs(chunks, tokens, compression):
    require_format(compression)
    return {"ids": Spec((chunks, tokens), torch.int64)}


def reference(packed, starts, sizes, chunks, tokens, compression):
    _, decompress_into = codec(compression)
    ids = torch.empty(chunks, tokens, dtype=torch.int64)
    for chunk, row in zip(views(packed.cpu(), starts, sizes), ids.numpy().view("u1"), strict=True):
        decompress_into(chunk, row)
    return ids.to(packed.device)


def metrics(sizes, chunks, tokens):
    return {"ratio": Metric(8 * chunks * tokens / int(sizes.sum()), "x", "higher")}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=reference,
    time_at={"chunks": 512, "tokens": 8192, "compression": "lz4"},  # 32 MiB of ids, in chunks of 64 KiB
    cpu_at={"chunks": 64, "tokens": 8192, "compression": "lz4"},
    check_at=(
        {"chunks": 1, "tokens": 1, "compression": "lz4"},
        {"chunks": 65, "tokens": 1031, "compression": "lz4"},
        {"chunks": 7, "tokens": 8192, "compression": "snappy"},
        {"chunks": 5, "tokens": 700, "compression": "deflate"},
    ),
    work=lambda chunks, tokens, compression: {"dram_write": 8 * chunks * tokens},
    rtol=0.0,  # bytes are restored
    atol=0.0,
    clock="host",
    metrics=metrics,
)

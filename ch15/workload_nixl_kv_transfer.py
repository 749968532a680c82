"""Keys and values of a prompt go from the GPUs that computed them to those that decode: landed[:, places] = pool[:, table] of every rank.

Prefill ran in tensor parallel, so each rank has a share of the heads; each rank decodes with all of them. A page is 16 tokens of one
layer's keys or values, a block those of all layers. `table` has the sender's pages, `places` the receiver's. `backend` moves the optimized
side's: ipc or nixl.
"""
# reason: the host issues four operations per block, which take it longer than NVLink takes for the block's bytes; most of it is `layers`
# predicts: layers 2.38 ms = 2 * layers * pages * page * (1 / 350e9 + 8 / dram_copy) + layers * 10e-6  (2 gathers, 2 scatters, 48 messages)
# predicts: whole 1.72 ms = 2 * layers * pages * page * (1 / 350e9 + 6 / dram_copy) + 10e-6  (a gather, two scatters, one message)

import torch

from common import Spec, Workload

BF16 = torch.bfloat16


def inputs(rand, rank, layers, pages, page, backend):
    mine = rand.of_rank(rank)
    return {
        "pool": mine.normal(layers, 2 * pages, page, dtype=BF16),
        "table": rand.place(mine.permutation(2 * pages)[:pages], "device"),
        "places": rand.permutation(pages),
    }


def reference(shards, ranks, layers, pages, page, backend):
    parts = []
    for rank in range(ranks):
        pool, table, places = (shards(rank)[name] for name in ("pool", "table", "places"))
        parts.append(torch.zeros_like(pool[:, :pages]))
        parts[-1][:, places] = pool[:, table]
    return torch.cat(parts)


def work(layers, pages, page, backend):
    size = 2 * layers * pages * page
    return {"peer": size, "dram_read": 2 * size, "dram_write": 2 * size}  # of its own pages and of the peer's


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda layers, pages, page, backend: {"landed": Spec((2 * layers, pages, page), BF16)},
    reference=reference,
    ranks=(2,),
    ladder=("layers", "whole"),
    # gpt-oss-20b: keys and values of 24 layers, pages of 16 tokens by 4 of 8 heads by 64 elements, a prompt of 16384 tokens.
    time_at={"layers": 48, "pages": 1024, "page": 4096, "backend": "ipc"},
    cpu_at={"layers": 8, "pages": 32, "page": 1024, "backend": "ipc"},
    check_at=(
        {"layers": 1, "pages": 1, "page": 1, "backend": "ipc"},
        {"layers": 3, "pages": 7, "page": 65, "backend": "ipc"},
        {"layers": 2, "pages": 33, "page": 128, "backend": "ipc"},
    ),
    work=work,
    rtol=0.0,  # bits are moved
    atol=0.0,
    clock="launch",
)

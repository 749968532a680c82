"""Send one request's blocks of a paged KV cache through an RDMA card into a GPU's memory: y[i] = cache[table[i]], in BF16.

So a prefill worker hands a request to a decode worker. The card is connected to itself, so one host with one GPU is enough.
"""

import torch

from common import Spec, Workload


def inputs(rand, blocks, sent, elements):
    return {
        "cache": rand.normal(blocks, elements, dtype=torch.bfloat16),
        "table": rand.permutation(blocks)[:sent].to(torch.int32),
    }


def reference(cache, table):
    return cache[table.long()]


def work(blocks, sent, elements):
    """In bytes; over PCIe each value leaves the GPU once, and once comes back."""
    size = 2 * sent * elements
    return {"d2h": size, "h2d": size}


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda blocks, sent, elements: {"y": Spec((sent, elements), torch.bfloat16)},
    reference=reference,
    time_at={"blocks": 8192, "sent": 2048, "elements": 16384},  # blocks of 16 tokens, 8 heads of 64, keys and values: 67 MB sent
    check_at=(
        {"blocks": 3, "sent": 1, "elements": 1},
        {"blocks": 130, "sent": 130, "elements": 65},
        {"blocks": 40, "sent": 17, "elements": 130},
    ),
    work=work,
    rtol=0.0,  # copies
    atol=0.0,
    clock="host",  # the card's work is on no stream: the host waits for it
)

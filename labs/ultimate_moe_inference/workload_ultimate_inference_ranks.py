"""A decode step of eight sequences through layers of gpt-oss-120b, 2 of its 36, whose heads and experts' hidden units lie on several ranks.

Every rank has the same hidden states before the step and after it, and each reads its part of each expert that a token chose.
"""
# reason: the baseline waits for the device once per expert, and launches its kernels one by one

import torch
from shared_gpt_oss import config_of
from shared_tensor_parallel import answered, packed_of, share_of, weights_of
from shared_workload import BF16, work

from common import Spec, Workload

SMALL = {"layers": 2, "hidden": 704, "heads": 64, "experts": 8}  # 8 key heads, and 22 blocks of 32 units


def inputs(rand, rank, ranks, layers, hidden, heads, experts, sequences, context):
    """What `shared_workload.inputs` has, of this rank's heads and units."""
    config = config_of(layers, hidden, heads, experts)
    share = share_of(config, rank, ranks)
    cache, mine = (layers, sequences, share.kv_heads, context, config.head_dim), rand.of_rank(rank)
    return {
        "x": rand.normal(sequences, hidden, dtype=BF16),
        "weights": weights_of(rand, rank, config, share),
        "packed": packed_of(rand, rank, config, share),
        "chosen": rand.place(rand.normal(layers, sequences, experts).topk(4).indices, "device"),
        "keys": mine.normal(*cache, dtype=BF16),
        "values": mine.normal(*cache, dtype=BF16),
    }


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda layers, hidden, heads, experts, sequences, context: {"y": Spec((sequences, hidden), torch.bfloat16)},
    reference=answered,
    constants=("weights", "packed", "keys", "values"),
    ranks=(2, 4, 8),
    time_at={"layers": 2, "hidden": 2880, "heads": 64, "experts": 128, "sequences": 8, "context": 2048},
    cpu_at=None,  # a CPU has no graphs, and Triton's interpreter checks a kernel, it does not race
    check_at=(
        {**SMALL, "sequences": 8, "context": 130},
        {**SMALL, "hidden": 736, "sequences": 2, "context": 5},  # 23 blocks: some ranks have one more
    ),
    work=lambda ranks, **shape: {key: amount / ranks for key, amount in work(**shape).items()},  # what a rank reads and multiplies
    clock="launch",
    rtol=2**-6,
    atol=0.4,  # as in shared_workload.py: parts of a sum are rounded once more, by less than the step's other roundings
)

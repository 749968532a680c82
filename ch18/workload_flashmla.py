"""Decode with multi-head latent attention, DeepSeek-V3's widths: a token's keys and values of all heads come from one latent vector.

`latent` [sequences, context, kv_rank + rope] is what has to be kept. Head h's key is (k_up[h] latent, rope), its value v_up[h] latent.
A context has at least 1 token.
"""

import torch

from common import Spec, Workload

BF16 = torch.bfloat16


def inputs(rand, sequences, context, heads, kv_rank, rope, nope):
    return {
        "q": rand.normal(sequences, heads, nope + rope, dtype=BF16, std=2.0),
        "latent": rand.normal(sequences, context, kv_rank + rope, dtype=BF16),
        "k_up": rand.normal(heads, nope, kv_rank, dtype=BF16, std=kv_rank**-0.5),
        "v_up": rand.normal(heads, nope, kv_rank, dtype=BF16, std=kv_rank**-0.5),
    }


def reference(q, latent, k_up, v_up, kv_rank):
    answers = []
    for query, kept in zip(q, latent, strict=True):  # [heads, nope + rope], [context, kv_rank + rope]
        absorbed = torch.einsum("hn,hnr->hr", query[:, : k_up.shape[1]], k_up)
        scores = torch.cat((absorbed, query[:, k_up.shape[1] :]), 1) @ kept.T * query.shape[1] ** -0.5
        answers.append(torch.einsum("hr,hvr->hv", scores.softmax(-1) @ kept[:, :kv_rank], v_up))
    return torch.stack(answers)


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda sequences, context, heads, kv_rank, rope, nope: {"y": Spec((sequences, heads, nope), BF16)},
    reference=reference,
    constants=("latent", "k_up", "v_up"),
    time_at={"sequences": 16, "context": 4096, "heads": 128, "kv_rank": 512, "rope": 64, "nope": 128},
    cpu_at=None,  # Triton's interpreter checks a kernel, it does not race
    check_at=(  # FlashMLA takes a rank of 512 and 64 rotary elements alone
        {"sequences": 1, "context": 1, "heads": 16, "kv_rank": 512, "rope": 64, "nope": 16},
        {"sequences": 2, "context": 100, "heads": 32, "kv_rank": 512, "rope": 64, "nope": 32},
        {"sequences": 1, "context": 1000, "heads": 80, "kv_rank": 512, "rope": 64, "nope": 128},  # heads of two blocks, one not full
        {"sequences": 2, "context": 17, "heads": 16, "kv_rank": 512, "rope": 64, "nope": 16},
        {"sequences": 1, "context": 4097, "heads": 16, "kv_rank": 512, "rope": 64, "nope": 16},
    ),
    work=lambda sequences, context, heads, kv_rank, rope, nope: {
        "bf16": 2 * sequences * heads * (context * (2 * kv_rank + rope) + 2 * nope * kv_rank),
        "dram_read": 2 * (sequences * context * (kv_rank + rope) + 2 * heads * nope * kv_rank),
    },
    rtol=2.0**-6,  # queries, shares and averages are rounded to bf16 on their way, and so are expanded keys and values
    atol=0.015,  # rounded at the same places on a CPU, with 4096 tokens, answers took at most 0.3 of this tolerance
    ladder=("one_part",),
)

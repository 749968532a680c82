"""Steps of one layer in an engine: a prompt is prefilled in chunks, and in each step every running sequence decodes a token.

Attention is over paged keys and values. What decodes then passes an RMSNorm and the first matrix of an expert. Widths are those of
Mixtral 8x7B. The chunk's own tokens end with attention, so that the three changes are seen alone.
"""
# needs: fp8
# reason: the baseline's host starts some 20 kernels a step, the optimized side's one graph for all steps
# predicts: paged = 0.25 x baseline  (the host sets the time: 20 operators a step become 5)
# predicts: fused = 0.8 x paged  (5 operators a step become 4, while the host still sets the time)

import torch
from shared_mixed_steps import EPS, chunks_of, inputs, outputs, work

from common import Precision, Workload

ONE = {"sequences": 1, "page": 16, "heads": 1, "kv_heads": 1, "dim": 64, "wide": 16}
SMALL = {"page": 16, "heads": 8, "kv_heads": 2, "dim": 64}


def attention(query, keys, values, pages, last):
    """[tokens, heads, dim]: token i sees the first `last[i]` tokens of the pages."""
    key, value = (x[pages].flatten(0, 1)[: max(last)] for x in (keys, values))  # [tokens, kv heads, dim]
    hidden = torch.arange(len(key), device=query.device) >= torch.tensor(last, device=query.device)[:, None]
    scores = torch.einsum("qhgd,thd->hgqt", query.unflatten(1, (keys.shape[2], -1)), key) * query.shape[2] ** -0.5
    return torch.einsum("hgqt,thd->qhgd", scores.masked_fill_(hidden, -torch.inf).softmax(-1), value).flatten(1, 2)


def reference(prompt, queries, keys, values, table, lengths, norm, weight, context):
    rows, tokens = table.long(), lengths.tolist()
    parts = chunks_of(context, 64)  # of queries: all scores of a long prompt have no room
    attended = torch.cat([attention(prompt[at : at + n], keys, values, rows[-1], range(at + 1, at + n + 1)) for at, n in parts])
    decoded = [
        torch.cat([attention(q[None], keys, values, rows[s], [tokens[s] + i]) for s, q in enumerate(step)])
        for i, step in enumerate(queries)
    ]
    x = torch.stack(decoded).flatten(2)
    return attended, x * (x.square().mean(-1, keepdim=True) + EPS).rsqrt() * norm @ weight.T


WORKLOAD = Workload(
    inputs=inputs,
    outputs=outputs,
    reference=reference,
    time_at={"sequences": 16, "context": 1024, "chunk": 64, "page": 16, "heads": 32, "kv_heads": 8, "dim": 128, "wide": 14336},
    cpu_at=None,  # a CPU has no graphs, and Triton's interpreter checks a kernel, it does not race
    check_at=(
        *({**ONE, "context": tokens, "chunk": tokens} for tokens in (1, 17, 4097)),
        {**SMALL, "sequences": 17, "context": 40, "chunk": 24, "wide": 80},  # the last chunk is short; rows of two tiles
        {**SMALL, "sequences": 2, "context": 150, "chunk": 200, "page": 128, "wide": 112},  # the whole prompt, some tiles of keys
    ),
    constants=("table", "lengths", "norm", "weight"),
    work=work,
    clock="launch",
    ladder=("paged", "fused"),
    rtol=0.01,  # shares and answers are rounded to bf16: 2^-9 each, and the mean of many
    atol=0.04,  # a norm and a product more than in paged_decode
    # Rounding to e4m3 moves an operand by 0.026 of itself in the root mean square, so a sum of unit scale by 0.037: see ch14's triton_fp8.
    changes=Precision(rtol=2.0**-5, atol=0.28),
    changed_by=("fused", "optimized"),
)

"""Optimized: compiled flex_attention skips blocks the mask empties."""
# reason: the blocks that the mask keeps hold a twelfth of the pairs that the baseline multiplies
# predicts: baseline 9.29 ms = 4 * heads * dim * tokens**2 / (0.3 * bf16) on h100  (all pairs; masked, 0.3 of the peak: assumed)
# predicts: optimized 0.593 ms = 4 * heads * dim * tokens * 1325 / (0.38 * bf16) on h100  (1325 keys a query in blocks kept: counted)
# proves: kernel flex_attention
# proves: counter sm__pipe_tensor_cycles_active.sum < 0.2 x baseline

import torch
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

compiled = torch.compile(flex_attention, fullgraph=True, dynamic=False)


def prepare(q, k, v, document, window):
    def seen(_batch, _head, query, key):
        return (document[query] == document[key]) & (query >= key) & (query - key < window)

    tokens = len(document)
    blocks = create_block_mask(seen, None, None, tokens, tokens, device=document.device)

    def step():
        return compiled(q, k, v, block_mask=blocks)

    return step

"""FlashInfer's decode attention over the pages of shared_paged_cache.py."""

import torch


def decoder(q, keys, values, table, lengths):
    """A step; the plan, which copies lengths to the host, is made beforehand."""
    from flashinfer import BatchDecodeWithPagedKVCacheWrapper  # optional: without it this side alone is left out

    (_, heads, dim), (_, page, kv_heads, _) = q.shape, keys.shape
    counts = (lengths + page - 1) // page
    starts = torch.nn.functional.pad(counts.cumsum(0, dtype=torch.int32), (1, 0))
    own = torch.arange(table.shape[1], device=q.device) < counts[:, None]
    space = torch.empty(1 << 27, dtype=torch.uint8, device=q.device)
    wrapper = BatchDecodeWithPagedKVCacheWrapper(space, kv_layout="NHD", use_tensor_cores=True)
    last = (lengths - 1) % page + 1
    wrapper.plan(starts, table[own], last, heads, kv_heads, dim, page, q_data_type=q.dtype, kv_data_type=keys.dtype)
    return lambda: wrapper.run(q, (keys, values))

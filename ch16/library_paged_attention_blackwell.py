"""Library: FlashInfer's paged decode over e4m3 pages, with one scale for all keys and one for all values."""
# needs: fp8

import torch


def prepare(q, k, v, keys, values, table, context):
    from flashinfer import BatchDecodeWithPagedKVCacheWrapper  # optional: without it this side alone is absent

    (sequences, heads, dim), kv_heads, page, pages = q.shape, k.shape[1], keys.shape[2], table.shape[1]
    k_scale, v_scale = (x.abs().amax().float().item() / 448 for x in (keys, values))
    keys, values = ((x / scale).to(torch.float8_e4m3fn) for x, scale in ((keys, k_scale), (values, v_scale)))
    wrapper = BatchDecodeWithPagedKVCacheWrapper(torch.empty(1 << 27, dtype=torch.uint8, device=q.device), kv_layout="HND")
    starts = torch.arange(sequences + 1, dtype=torch.int32, device=q.device) * pages
    last = torch.full((sequences,), (context - 1) % page + 1, dtype=torch.int32, device=q.device)
    types = {"q_data_type": q.dtype, "kv_data_type": torch.float8_e4m3fn}
    wrapper.plan(starts, table.flatten(), last, heads, kv_heads, dim, page, **types)
    slots, at = table[:, (context - 1) // page].long(), (context - 1) % page

    def step():
        keys[slots, :, at] = (k / k_scale).clamp(-448, 448).to(keys.dtype)
        values[slots, :, at] = (v / v_scale).clamp(-448, 448).to(values.dtype)
        return wrapper.run(q, (keys, values), k_scale=k_scale, v_scale=v_scale)

    return step

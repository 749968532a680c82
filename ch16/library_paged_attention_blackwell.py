"""Library: FlashInfer's paged decode over e4m3 pages, one scale for all; where it is missing, PyTorch's attention over gathered pages."""

import contextlib

import torch
from torch.nn.functional import scaled_dot_product_attention

BatchDecode = None
with contextlib.suppress(ImportError):  # optional: it compiles its kernels at the first call
    from flashinfer import BatchDecodeWithPagedKVCacheWrapper as BatchDecode


@torch.compile(fullgraph=True, dynamic=False)
def append(keys, values, k, v, slots, at, k_scale, v_scale):
    """Write a token of each sequence into its page, in e4m3."""
    keys[slots, :, at] = (k / k_scale).clamp(-448, 448).to(keys.dtype)
    values[slots, :, at] = (v / v_scale).clamp(-448, 448).to(values.dtype)


def gathered(q, k, v, keys, values, table, context):
    keys, values, page = keys.clone(), values.clone(), keys.shape[2]
    slots, at = table[:, (context - 1) // page].long(), (context - 1) % page

    def step():
        keys[slots, :, at], values[slots, :, at] = k, v
        seen = [x[table].transpose(1, 2).flatten(2, 3)[:, :, :context] for x in (keys, values)]  # [sequences, kv heads, tokens, dim]
        return scaled_dot_product_attention(q.unflatten(1, (k.shape[1], -1)), *seen).flatten(1, 2)

    return step


def prepare(q, k, v, keys, values, table, context):
    if BatchDecode is None or not q.is_cuda:
        return gathered(q, k, v, keys, values, table, context)
    (sequences, heads, dim), kv_heads, page, pages = q.shape, k.shape[1], keys.shape[2], table.shape[1]
    k_scale, v_scale = (x.abs().amax().float().item() / 448 for x in (keys, values))
    keys, values = ((x / scale).to(torch.float8_e4m3fn) for x, scale in ((keys, k_scale), (values, v_scale)))
    wrapper = BatchDecode(torch.empty(1 << 27, dtype=torch.uint8, device=q.device), kv_layout="HND", use_tensor_cores=True)
    starts = torch.arange(sequences + 1, dtype=torch.int32, device=q.device) * pages
    last = torch.full((sequences,), (context - 1) % page + 1, dtype=torch.int32, device=q.device)
    types = {"q_data_type": q.dtype, "kv_data_type": torch.float8_e4m3fn}
    wrapper.plan(starts, table.flatten(), last, heads, kv_heads, dim, page, **types)
    slots, at = table[:, (context - 1) // page].long(), (context - 1) % page

    def step():
        append(keys, values, k, v, slots, at, k_scale, v_scale)
        return wrapper.run(q, (keys, values), k_scale=k_scale, v_scale=v_scale)

    return step

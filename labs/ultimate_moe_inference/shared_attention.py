"""One new token a sequence attends to cached ones, in three ways. Caches are [sequences, kv heads, tokens, dim], of one layer each."""

import torch
from torch.nn.functional import pad

from common.models.layers import rotation


def caches_of(config, keys, values):
    """For each layer the earlier tokens that it sees, of [layers, sequences, kv heads, context, dim]; and the new token's rotation."""
    context = keys.shape[3]
    seen = [(config.window_of(layer) or context + 1) - 1 for layer in range(config.layers)]
    caches = [tuple(x[layer, :, :, -seen[layer] :] for x in (keys, values)) for layer in range(config.layers)]
    return caches, rotation(config, torch.tensor([context], device=keys.device), keys.dtype)


def _with_sinks(scores, sinks, values):
    """Values in their shares. A sink is a score that takes its share of the sum and adds nothing."""
    column = sinks.to(scores.dtype).expand(*scores.shape[:-1], 1)
    shares = torch.cat((scores, column), dim=-1).softmax(-1, dtype=torch.promote_types(scores.dtype, torch.float32))
    return shares[..., :-1].to(values.dtype) @ values


def repeated(config, weights, caches):
    """The token is appended by concatenation, and keys and values are repeated for each query head, as in transformers' eager code."""
    groups = config.heads // config.kv_heads

    def attend(layer, q, k, v):
        keys, values = (torch.cat((old, new.transpose(1, 2)), 2) for old, new in zip(caches[layer], (k, v), strict=True))
        keys, values = keys.repeat_interleave(groups, 1), values.repeat_interleave(groups, 1)
        scores = q.transpose(1, 2) @ keys.mT * config.head_dim**-0.5
        return _with_sinks(scores, weights[layer]["sinks"].view(-1, 1, 1), values).transpose(1, 2)

    return attend


def _roomy(caches):
    """The side's own copies, with a first slot for the newest token: attention does not mind the order."""
    return [tuple(pad(old, (0, 0, 1, 0)) for old in pair) for pair in caches]


def _appended(config, cache, q, k, v):
    """Queries with those of a key head side by side, [sequences, kv heads, group, dim], once the token is in its slot."""
    for kept, new in zip(cache, (k, v), strict=True):
        kept[:, :, 0] = new[:, 0]
    return q[:, 0].unflatten(1, (config.kv_heads, -1))


def in_place(config, weights, caches):
    """The token is written into its slot, and query heads that share a key head are rows of one product."""
    caches = _roomy(caches)

    def attend(layer, q, k, v):
        keys, values = caches[layer]
        scores = _appended(config, caches[layer], q, k, v) @ keys.mT * config.head_dim**-0.5
        return _with_sinks(scores, weights[layer]["sinks"].view(config.kv_heads, -1, 1), values).flatten(1, 2)[:, None]

    return attend


def fused(config, weights, caches):
    """FlashAttention over the cache. It knows no sinks, but returns the log of the sum of exponentials, to which a sink adds."""
    caches = _roomy(caches)
    aten, on_gpu = torch.ops.aten, caches[0][0].is_cuda
    flash = aten._scaled_dot_product_flash_attention if on_gpu else aten._scaled_dot_product_flash_attention_for_cpu

    def attend(layer, q, k, v):
        grouped = _appended(config, caches[layer], q, k, v)
        answer, log_sum = flash(grouped, *caches[layer])[:2]
        kept = torch.sigmoid(log_sum - weights[layer]["sinks"].view(config.kv_heads, -1))  # 1 less the sink's share
        return (answer * kept.to(answer.dtype)[..., None]).flatten(1, 2)[:, None]

    return attend

"""Library: FlashMLA's dense decode kernel, over pages of 64 latents."""
# needs: wgmma, package flash_mla

import torch
from shared_latent_products import between_products
from torch.nn.functional import pad

PAGE = 64  # the kernel takes pages of 64 tokens, a rank of 512 and 64 rotary elements


def prepare(q, latent, k_up, v_up, context, kv_rank):
    from flash_mla import flash_mla_with_kvcache, get_mla_metadata  # optional: without it this side alone is left out

    sequences, pages, nope = len(q), -(-context // PAGE), k_up.shape[1]
    cache = pad(latent, (0, 0, 0, -context % PAGE)).view(sequences * pages, PAGE, 1, latent.shape[2])  # [pages, tokens, key heads, width]
    table = torch.arange(sequences * pages, dtype=torch.int32, device=q.device).view(sequences, pages)
    lengths = torch.full((sequences,), context, dtype=torch.int32, device=q.device)
    plan, _ = get_mla_metadata()
    options = {"softmax_scale": q.shape[2] ** -0.5, "use_legacy": True}  # legacy: Hopper's kernels, bf16 as stored

    queries = q.new_empty(*q.shape[:2], latent.shape[2])  # FlashMLA wants a query's absorbed and rotary elements side by side

    def attend():
        # Just before it: FlashMLA may begin before a product in front of it ends, and not before a copy does.
        queries[..., kv_rank:] = q[..., nope:]
        return flash_mla_with_kvcache(queries[:, None], cache, table, lengths, kv_rank, plan, **options)[0][:, 0]

    step = between_products(q, k_up, v_up, queries[..., :kv_rank], attend)
    step()  # the first call fills the plan: which SM reads which pages
    return step

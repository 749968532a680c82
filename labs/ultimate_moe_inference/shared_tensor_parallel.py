"""A decode step over several ranks (Megatron's split, arXiv:1909.08053): a rank has some heads, and some hidden units of each expert.

What is not split is the same on every rank: hidden states, norms, the router, and which experts a token takes.
"""

import dataclasses

import torch
import torch.distributed as dist
from shared_attention import caches_of, repeated
from shared_gpt_oss import config_of, one_by_one

from common.block_formats import MX_BLOCK, mxfp4_drawn
from common.models.decoder import attention, shapes
from common.models.layers import linear, rms_norm

ALIKE = ("attention_norm", "feed_forward_norm", "router", "router_bias")


def share_of(config, rank, ranks):
    """The layers as a rank has them. Hidden units go by whole MXFP4 blocks, of which the first ranks may have one more."""
    blocks, more = divmod(config.intermediate // MX_BLOCK, ranks)
    units = MX_BLOCK * (blocks + (rank < more))
    return dataclasses.replace(config, heads=config.heads // ranks, kv_heads=config.kv_heads // ranks, intermediate=units)


def weights_of(rand, rank, config, share):
    """A dict a layer, without its experts. A bias behind a sum over all ranks is added by rank 0, and zero elsewhere."""
    whole, mine = shapes(config), rand.of_rank(rank)

    def weight(name, shape):
        drawn_by = rand if name in ALIKE else mine
        wide = whole[f"layers.0.{name}"]
        std = wide[1] ** -0.5 if len(wide) > 1 else 0.5
        drawn = drawn_by.normal(*shape, dtype=config.dtype, mean=float(name.endswith("norm")), std=std)
        return rand.place(drawn * (rank == 0), "device") if name == "o_bias" else drawn

    named = {name.removeprefix("layers.0."): shape for name, shape in shapes(share).items() if name.startswith("layers.0.")}
    return [{name: weight(name, shape) for name, shape in named.items() if "experts" not in name} for _ in range(config.layers)]


def packed_of(rand, rank, config, share):
    """The rank's units of all experts, a dict a layer: MXFP4 blocks, scales and biases. Values have the size of the whole matrix's."""
    mine, experts, hidden, units = rand.of_rank(rank), config.experts.count, config.hidden, share.intermediate

    def bias(rows, by):
        return rand.place(mine.normal(experts, rows, dtype=config.dtype, std=0.5) * by, "device")

    def down():
        blocks, scales = mxfp4_drawn(mine, experts, hidden, config.intermediate)
        parts = blocks[..., : units // 2], scales[..., : units // MX_BLOCK]
        return [*(rand.place(part.contiguous(), "device") for part in parts), bias(hidden, rank == 0)]

    return [{"gate_up": [*mxfp4_drawn(mine, experts, 2 * units, hidden), bias(2 * units, 1)], "down": down()} for _ in range(config.layers)]


def halves(config, weights, turn, chosen, attend, mixture):
    """A layer's two halves, of this rank's heads and units: each gives what is to be added up over all ranks."""
    weights = {f"layers.{layer}.{name}": weight for layer, each in enumerate(weights) for name, weight in each.items()}

    def attended(layer, x):
        normed = rms_norm(x, weights[f"layers.{layer}.attention_norm"], config.norm_eps)
        return attention(weights, config, layer, normed[:, None], turn, attend)[:, 0]

    def mixed(layer, x):
        normed = rms_norm(x, weights[f"layers.{layer}.feed_forward_norm"], config.norm_eps)
        shares = linear(weights, f"layers.{layer}.router", normed).gather(1, chosen[layer]).softmax(-1)
        return mixture(layer, normed, chosen[layer], shares)

    return attended, mixed


def decode(layers, x, parts):
    """Hidden states behind all layers, the same on every rank: two sums over all ranks a layer."""
    for layer in range(layers):
        for part in parts:
            added = part(layer, x)
            dist.all_reduce(added)
            x = x + added
    return x


def answered(shards, rank, ranks, layers, hidden, heads, experts):
    """The step in plain arithmetic, half of a layer after the other, each rank's part in its turn."""
    config = config_of(layers, hidden, heads, experts)
    x = shards(rank)["x"].clone()
    for layer in range(layers):
        for half in range(2):
            added = torch.zeros_like(x)
            for peer in range(ranks):
                at, share = shards(peer), share_of(config, peer, ranks)
                caches, turn = caches_of(share, at["keys"], at["values"])
                attend, mixture = repeated(share, at["weights"], caches), one_by_one(share, at["packed"])
                added += halves(share, at["weights"], turn, at["chosen"], attend, mixture)[half](layer, x)
            x = x + added
    return x

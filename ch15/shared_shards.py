"""Data of pairs whose experts lie on several ranks: a rank has its own tokens and E / ranks experts, as a sharded checkpoint gives them."""

import torch
from shared_experts import swiglu

BF16 = torch.bfloat16


def draw(rand, rank, ranks, tokens, experts, top, hidden, ffn, bias=0.0):
    """Tokens of `rank`, the experts that each chose and their gates, and the weights of the rank's experts. `bias`: popularity, experts."""
    if experts % ranks:
        raise ValueError(f"experts={experts} and {ranks} ranks; expected as many experts on every rank")
    mine = rand.of_rank(rank)
    scores, chosen = (mine.normal(tokens, experts) + bias).topk(top)
    local = experts // ranks
    return {
        "x": mine.normal(tokens, hidden, dtype=BF16),
        "chosen": mine.place(chosen, "device"),
        "gates": mine.place(scores.softmax(dim=1).to(BF16), "device"),
        "up": mine.normal(local, 2 * ffn, hidden, dtype=BF16, std=hidden**-0.5),
        "down": mine.normal(local, hidden, ffn, dtype=BF16, std=2 * ffn**-0.5),
    }


def answered(shards, rank, ranks):
    """What the experts of all ranks answer `rank`'s tokens, tokens x hidden; no token is dropped."""
    own = {name: shards(rank)[name].clone() for name in ("x", "chosen", "gates")}
    y = torch.zeros_like(own["x"])
    for peer in range(ranks):
        weights = shards(peer)
        for number, (up, down) in enumerate(zip(weights["up"], weights["down"], strict=True)):
            token, place = torch.where(own["chosen"] == peer * len(weights["up"]) + number)
            y.index_add_(0, token, own["gates"][token, place, None] * swiglu(own["x"][token], up, down))
    return y

"""Experts that take a bounded number of tokens: which choices of a batch find room, and how many each expert must turn away."""

import math

import torch

from common import Metric


def capacity_of(tokens, experts, top, capacity_factor):
    """How many tokens an expert takes: `capacity_factor` times its even share of all choices, at most all tokens. Raises ValueError."""
    if capacity_factor <= 0:
        raise ValueError(f"capacity_factor={capacity_factor}; expected more than 0 ({experts / top:g} leaves room for every token)")
    return min(tokens, math.ceil(capacity_factor * tokens * top / experts))


def queue(chosen, experts):
    """The place of every choice in its expert's queue, tokens x top, in the order of tokens; and how long each queue is, experts."""
    choices = chosen.flatten()
    waiting = (choices == torch.arange(experts, device=choices.device)[:, None]).cumsum(dim=1)  # experts x choices
    return (waiting.gather(0, choices[None]) - 1).view_as(chosen), waiting[:, -1]


def taken(lengths, capacity):
    """Of queues of these lengths, how many choices each expert takes, and how many it drops: what a batch has to say of itself."""
    kept = lengths.clamp(max=capacity)
    return kept, lengths - kept


def balance(chosen, experts, tokens, top, capacity_factor):
    """The last batch's balance: its longest queue over the mean, the variance of queues, choices dropped, and every expert's tokens."""
    lengths = queue(chosen, experts)[1].double()
    kept, dropped = taken(lengths, capacity_of(tokens, experts, top, capacity_factor))
    return {
        "load_imbalance": Metric((lengths.max() / lengths.mean()).item(), "x", "lower"),
        "load_variance": Metric(lengths.var(correction=0).item(), "tokens^2", "lower"),
        "dropped_choices": Metric(dropped.sum().item(), "choices", "lower"),
        **{f"tokens_of_expert_{expert}": Metric(count, "tokens", "neither") for expert, count in enumerate(kept.tolist())},
    }

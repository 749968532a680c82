"""A language model of three matrices: every token of a context turns the state, and none of them is forgotten."""

import torch

from common import Metric

VOCABULARY = 64
HIDDEN = 32


def advance(weights, state, tokens):
    """The states behind one more token a row: (rows, HIDDEN) and int64 (rows,) give (rows, HIDDEN)."""
    return state @ weights["mix"] + weights["embedding"][tokens]


def logits_of(weights, state):
    """What comes next, of states of shape (rows, HIDDEN): (rows, VOCABULARY)."""
    return (state / state.norm(dim=-1, keepdim=True)) @ weights["head"]


def read(weights, prompt):
    """The state behind a prompt, of shape (1, HIDDEN)."""
    state = torch.zeros(1, HIDDEN, device=weights["mix"].device)
    for token in prompt:
        state = advance(weights, state, torch.tensor([token], device=state.device))
    return state


def report_batch(report, sizes):
    """The mean number of requests in a step, as the side sees it."""
    report("batch", Metric(sum(sizes) / len(sizes), "requests", "higher"))

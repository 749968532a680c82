"""Tokens from logits, and which drafted tokens stand: those that the target alone would have said."""

from __future__ import annotations

import torch


def greedy(logits: torch.Tensor) -> torch.Tensor:
    """The likeliest token, [...], of logits [..., vocabulary]."""
    return logits.argmax(-1)


def accept_greedy(drafted: torch.Tensor, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What the target alone would have said, as far as it was drafted, and one token more.

    drafted [batch, drafts]; logits [batch, drafts + 1, vocabulary], the target's behind the last token and behind each draft.
    Returns tokens [batch, drafts + 1] and how many of them count, [batch], from 1 to drafts + 1.
    """
    tokens = greedy(logits)
    return tokens, (tokens[:, :-1] == drafted).cumprod(1).sum(1) + 1

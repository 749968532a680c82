"""Tokens from logits, and which drafted tokens may stand so that the answer is distributed as the target's own."""

from __future__ import annotations

import torch


def greedy(logits: torch.Tensor) -> torch.Tensor:
    """The likeliest token, [...], of logits [..., vocabulary]."""
    return logits.argmax(-1)


def probabilities(logits: torch.Tensor, temperature: float) -> torch.Tensor:
    """The distribution at `temperature`, above 0, in at least float32: [..., vocabulary]."""
    wide = logits if logits.dtype == torch.float64 else logits.float()
    return (wide / temperature).softmax(-1)


def draw(probabilities: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
    """A token of each distribution, [...] of [..., vocabulary], which need not sum to 1. No answer waits for the host.

    The smallest of exponential waiting times of rates p is the i-th with probability p_i.
    """
    waits = torch.empty_like(probabilities).exponential_(generator=generator)
    return (probabilities / waits).argmax(-1)


def accept_greedy(drafted: torch.Tensor, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What the target alone would have said, as far as it was drafted, and one token more.

    drafted [batch, drafts]; logits [batch, drafts + 1, vocabulary], the target's behind the last token and behind each draft.
    Returns tokens [batch, drafts + 1] and how many of them count, [batch], from 1 to drafts + 1.
    """
    tokens = greedy(logits)
    return tokens, (tokens[:, :-1] == drafted).cumprod(1).sum(1) + 1


def accept_sampled(
    drafted: torch.Tensor, draft: torch.Tensor, target: torch.Tensor, generator: torch.Generator | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Speculative sampling (arXiv:2211.17192): tokens distributed exactly as `target` draws them, whatever `draft` is.

    drafted [batch, drafts], drawn from draft [batch, drafts, vocabulary]; target [batch, drafts + 1, vocabulary]. A draft x stands with
    probability target(x) / draft(x), at most 1. The first that falls is drawn again from what the target has more than the draft;
    behind the last that stands one more is drawn from the target. Returns tokens [batch, drafts + 1] and how many count, [batch].
    """
    drafts = drafted.shape[1]
    wanted, offered = (p.gather(-1, drafted[..., None]).squeeze(-1) for p in (target[:, :drafts], draft))
    thrown = torch.rand(offered.shape, dtype=offered.dtype, device=offered.device, generator=generator)
    stands = (thrown * offered < wanted).cumprod(1)
    count = stands.sum(1)
    left = torch.cat(((target[:, :drafts] - draft).clamp(min=0), target[:, drafts:]), dim=1)
    last = draw(left[torch.arange(len(drafted), device=drafted.device), count], generator)
    tokens = torch.cat((drafted, last[:, None]), dim=1).scatter(1, count[:, None], last[:, None])
    return tokens, count + 1

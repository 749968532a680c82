"""Tokens from logits, greedily or sampled, and which drafted tokens stand: those that the target alone would have said."""

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


def distribution(logits: torch.Tensor, temperature: float = 1.0, top_p: float = 1.0) -> torch.Tensor:
    """What is sampled from: probabilities in float32, [..., vocabulary], of logits divided by `temperature`.

    With `top_p`, only of the likeliest tokens that together have at least that probability; the others get 0. Both the target's and the
    draft model's logits may go through it. Raises ValueError for a temperature that is not above 0, and a `top_p` outside (0, 1].
    """
    if not temperature > 0:
        raise ValueError(f"found temperature {temperature}; expected more than 0, or greedy()")
    if not 0 < top_p <= 1:
        raise ValueError(f"found top_p {top_p}; expected more than 0 and at most 1")
    shares = (logits.float() / temperature).softmax(-1)
    if top_p < 1:
        ordered, order = shares.sort(-1, descending=True)
        likelier = ordered.cumsum(-1) - ordered  # of all tokens before each
        shares = torch.zeros_like(shares).scatter(-1, order, ordered.where(likelier < top_p, 0))
        shares = shares / shares.sum(-1, keepdim=True)
    return shares


def sample(weights: torch.Tensor, generator: torch.Generator | None = None) -> torch.Tensor:
    """A token, [...], drawn in proportion to `weights`, [..., vocabulary], at least one of a row positive. Nothing waits for the device."""
    waits = torch.empty_like(weights).exponential_(generator=generator)  # the first of exponential clocks that run at these rates
    return (weights / waits.clamp(min=torch.finfo(weights.dtype).tiny)).argmax(-1)


def accept_sampled(
    drafted: torch.Tensor, drafts: torch.Tensor, targets: torch.Tensor, generator: torch.Generator | None = None
) -> tuple[torch.Tensor, torch.Tensor]:
    """Drafts as far as they stand, and one token more, distributed as if all were drawn from the target alone.

    A draft x stands with probability min(1, target(x) / draft(x)). In place of the first that does not, a token is drawn from the residual
    distribution, max(0, target - draft) normalized; behind the last, from the target's (Leviathan et al., arXiv:2211.17192; Chen et al.,
    arXiv:2302.01318).

    drafted [batch, drafts], drawn from the distributions `drafts` [batch, drafts, vocabulary]; targets [batch, drafts + 1, vocabulary], the
    target's behind the last token and behind each draft. Returns tokens [batch, drafts + 1] and how many of them count, [batch], from 1 to
    drafts + 1.
    """
    of_target, of_draft = (each.gather(-1, drafted[..., None])[..., 0] for each in (targets[:, :-1], drafts))
    stands = torch.rand(drafted.shape, device=drafted.device, generator=generator) * of_draft < of_target
    residual = (targets[:, :-1] - drafts).clamp(min=0)
    residual = residual.where(residual.sum(-1, keepdim=True) > 0, targets[:, :-1])  # equal distributions: all drafts stand
    others = sample(torch.cat((residual, targets[:, -1:]), 1), generator)
    kept = stands.cumprod(1)
    tokens = torch.cat((torch.where(kept.bool(), drafted, others[:, :-1]), others[:, -1:]), 1)
    return tokens, kept.sum(1) + 1

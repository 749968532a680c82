"""Drafts stand where the target alone would have said the same; sampled tokens are distributed as the target's."""

import pytest
import torch

from common.serving.sampler import accept_greedy, accept_sampled, distribution, sample
from tests.support.chi_square import fits

VOCABULARY = 6


def test_greedy_drafts_stand_as_far_as_the_target_agrees():
    logits = torch.eye(VOCABULARY)[torch.tensor([[3, 1, 4, 2], [3, 1, 4, 2], [0, 1, 4, 2]])]
    drafted = torch.tensor([[3, 1, 4], [3, 0, 4], [3, 1, 4]])
    tokens, counts = accept_greedy(drafted, logits)
    assert counts.tolist() == [4, 2, 1]
    assert [row[:count] for row, count in zip(tokens.tolist(), counts.tolist(), strict=True)] == [[3, 1, 4, 2], [3, 1], [0]]


def test_a_distribution_at_a_temperature():
    logits = torch.tensor([[0.0, 1.0, 2.0], [5.0, 5.0, 0.0]])
    assert torch.allclose(distribution(logits), logits.softmax(-1))
    assert torch.allclose(distribution(logits, temperature=0.5), (2 * logits).softmax(-1))
    assert distribution(logits[:1].bfloat16(), temperature=1e-3).tolist() == [[0.0, 0.0, 1.0]]


@pytest.mark.parametrize(
    ("top_p", "kept"), [(0.5, [0, 1, 0, 0]), (0.51, [0.3, 0.5, 0, 0]), (0.79, [0.3, 0.5, 0, 0]), (0.9, [0.3, 0.5, 0, 0.15]), (1.0, None)]
)
def test_top_p_keeps_the_fewest_likeliest_tokens_that_reach_it(top_p, kept):
    shares = torch.tensor([0.3, 0.5, 0.05, 0.15])
    expected = shares if kept is None else torch.tensor(kept)
    assert torch.allclose(distribution(shares.log(), top_p=top_p), expected / expected.sum())


@pytest.mark.parametrize(
    ("options", "found"), [({"temperature": 0.0}, "temperature 0.0"), ({"top_p": 0.0}, "top_p 0"), ({"top_p": 1.5}, "1.5")]
)
def test_what_is_no_distribution_is_refused(options, found):
    with pytest.raises(ValueError, match=found):
        distribution(torch.zeros(3), **options)


def test_samples_are_distributed_as_their_weights():
    generator = torch.Generator().manual_seed(1)
    weights = torch.tensor([3.0, 0.0, 1.0, 0.25, 4.0])
    found = sample(weights.expand(20_000, -1), generator)
    assert fits(found.bincount(minlength=5), weights / weights.sum()) > 0.001


SAMPLES, DRAFTS = 20_000, 3


def speculated(accept, target, draft):
    """The first three tokens, behind token 0, of many sequences of a target whose next token depends on the last alone: [samples, 3].

    `target` and `draft` [vocabulary, vocabulary] are its distributions and those of the model that drafts.
    """
    generator = torch.Generator().manual_seed(7)
    said, counts = torch.zeros(SAMPLES, 1, dtype=torch.int64), torch.ones(SAMPLES, dtype=torch.int64)
    said = torch.nn.functional.pad(said, (0, 3 + DRAFTS))
    for _ in range(3):  # a round says one token at least
        last = said.gather(1, counts[:, None] - 1)
        drafted = [last]
        for _ in range(DRAFTS):
            drafted.append(sample(draft[drafted[-1]], generator))
        chain = torch.cat(drafted, 1)
        tokens, more = accept(chain[:, 1:], draft[chain[:, :-1]], target[chain], generator)
        places = (counts[:, None] + torch.arange(DRAFTS + 1)).clamp(max=said.shape[1] - 1)
        said.scatter_(1, places, tokens)  # those that do not count are overwritten by the next round
        counts = (counts + more).clamp(max=4)
    return said[:, 1:4]


def joint(target):
    """How likely each triple of tokens behind token 0 is, [vocabulary] * 3."""
    return target[0][:, None, None] * target[:, :, None] * target[None]


def chains(temperature=1.0, top_p=1.0):
    """A target and a draft model that resembles it."""
    logits = 1.5 * torch.randn(VOCABULARY, VOCABULARY, generator=torch.Generator().manual_seed(2))
    other = logits + torch.randn(VOCABULARY, VOCABULARY, generator=torch.Generator().manual_seed(3))
    return distribution(logits, temperature, top_p), distribution(other, temperature, top_p)


def p_value(accept, target, draft):
    said = speculated(accept, target, draft)
    numbers = (said * torch.tensor([VOCABULARY**2, VOCABULARY, 1])).sum(1)
    return fits(numbers.bincount(minlength=VOCABULARY**3), joint(target))


@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (0.7, 1.0), (1.3, 0.8)])
def test_speculation_samples_from_the_targets_distribution(temperature, top_p):
    assert p_value(accept_sampled, *chains(temperature, top_p)) > 0.001


def test_a_draft_of_the_targets_own_distribution_always_stands():
    target, _ = chains()
    drafted = sample(target[torch.zeros(500, 1, dtype=torch.int64)], torch.Generator().manual_seed(5))
    both = target[torch.zeros(500, 1, dtype=torch.int64)]
    tokens, counts = accept_sampled(drafted, both, torch.cat((both, target[drafted]), 1), torch.Generator().manual_seed(6))
    assert counts.eq(2).all()
    assert torch.equal(tokens[:, :1], drafted)


def accepts_always(drafted, drafts, targets, generator):
    """A wrong rule: what was drafted stands."""
    return torch.cat((drafted, sample(targets[:, -1:], generator)), 1), torch.full((len(drafted),), drafted.shape[1] + 1)


def accepts_only_likelier(drafted, drafts, targets, generator):
    """A wrong rule: a draft stands where the target finds it likelier than the draft model does."""
    wrong = drafts.masked_fill(drafts > targets[:, :-1], torch.inf)
    return accept_sampled(drafted, wrong, targets, generator)


def without_residual(drafted, drafts, targets, generator):
    """A wrong rule: in place of a rejected draft, a token of the target's distribution."""
    tokens, counts = accept_sampled(drafted, drafts, targets, generator)
    again = sample(targets, generator)
    at = torch.arange(tokens.shape[1]) == counts[:, None] - 1
    return tokens.where(~at, again), counts


@pytest.mark.parametrize("wrong", [accepts_always, accepts_only_likelier, without_residual])
def test_a_wrong_rule_is_seen(wrong):
    assert p_value(wrong, *chains()) < 1e-6

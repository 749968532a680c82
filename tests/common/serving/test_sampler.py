"""Sampling is exact: with drafts and without, tokens are distributed as the target's own."""

import pytest
import torch

from common.serving.sampler import accept_greedy, accept_sampled, draw, greedy, probabilities

TRIALS = 200_000
VOCABULARY = 6


def generator(seed=1):
    return torch.Generator().manual_seed(seed)


def distributions(*shape, seed, sharpness=2.0):
    return (torch.randn(*shape, VOCABULARY, generator=generator(seed)) * sharpness).softmax(-1)


def scatters(found, expected):
    """Deviations of counts from what is expected, in standard deviations."""
    return (found - TRIALS * expected) / (TRIALS * expected * (1 - expected)).sqrt()


def counted(tokens, size):
    return torch.bincount(tokens, minlength=size).double()


def test_draws_are_of_the_distribution():
    (p,) = distributions(1, seed=2)
    assert scatters(counted(draw(p.expand(TRIALS, -1), generator()), VOCABULARY), p).abs().max() < 5


def test_draws_take_weights_that_do_not_sum_to_one():
    p = torch.tensor([0.0, 3.0, 1.0, 0.0, 0.0, 0.0])
    tokens = draw(p.expand(TRIALS, -1), generator())
    assert set(tokens.tolist()) == {1, 2}
    assert (tokens == 1).double().mean() == pytest.approx(0.75, abs=0.01)


def test_a_low_temperature_is_greedy():
    logits = torch.randn(50, VOCABULARY, generator=generator(3))
    assert torch.equal(draw(probabilities(logits, 1e-4), generator()), greedy(logits))
    assert probabilities(logits.bfloat16(), 1.0).dtype == torch.float32


def test_greedy_drafts_stand_as_far_as_the_target_agrees():
    logits = torch.eye(VOCABULARY)[torch.tensor([[3, 1, 4, 2], [3, 1, 4, 2], [0, 1, 4, 2]])]
    drafted = torch.tensor([[3, 1, 4], [3, 0, 4], [3, 1, 4]])
    tokens, counts = accept_greedy(drafted, logits)
    assert counts.tolist() == [4, 2, 1]
    assert [row[:count] for row, count in zip(tokens.tolist(), counts.tolist(), strict=True)] == [[3, 1, 4, 2], [3, 1], [0]]


@pytest.mark.parametrize("sharpness", [0.3, 2.0, 8.0])
def test_sampled_drafts_leave_the_targets_distribution(sharpness):
    """Pairs of first and second token, where there are two; the target does not depend on what came before, so they are products."""
    target, draft = distributions(1, 3, seed=4, sharpness=sharpness), distributions(1, 2, seed=5, sharpness=sharpness)
    drafts = draft.expand(TRIALS, -1, -1)
    tokens, counts = accept_sampled(draw(drafts, generator(6)), drafts, target.expand(TRIALS, -1, -1), generator(7))
    p = target[0]
    assert scatters(counted(tokens[:, 0], VOCABULARY), p[0]).abs().max() < 5
    second = tokens[counts >= 2, 1]
    expected = len(second) * p[1]
    assert ((counted(second, VOCABULARY) - expected).abs() < 5 * (expected * (1 - p[1])).sqrt() + 5).all()


def test_as_many_drafts_stand_as_the_distributions_overlap():
    target, draft = distributions(1, 2, seed=8), distributions(1, 1, seed=9)
    drafts = draft.expand(TRIALS, -1, -1)
    _, counts = accept_sampled(draw(drafts, generator(6)), drafts, target.expand(TRIALS, -1, -1), generator(7))
    overlap = torch.minimum(target[0, 0], draft[0, 0]).sum()
    assert (counts == 2).double().mean() == pytest.approx(overlap.item(), abs=0.01)


def test_a_draft_of_the_same_distribution_always_stands():
    target = distributions(1, 4, seed=10).expand(1000, -1, -1)
    drafted = draw(target[:, :3], generator(11))
    tokens, counts = accept_sampled(drafted, target[:, :3], target, generator(12))
    assert (counts == 4).all()
    assert torch.equal(tokens[:, :3], drafted)

"""Drafts stand where the target alone would have said the same."""

import torch

from common.serving.sampler import accept_greedy

VOCABULARY = 6


def test_greedy_drafts_stand_as_far_as_the_target_agrees():
    logits = torch.eye(VOCABULARY)[torch.tensor([[3, 1, 4, 2], [3, 1, 4, 2], [0, 1, 4, 2]])]
    drafted = torch.tensor([[3, 1, 4], [3, 0, 4], [3, 1, 4]])
    tokens, counts = accept_greedy(drafted, logits)
    assert counts.tolist() == [4, 2, 1]
    assert [row[:count] for row, count in zip(tokens.tolist(), counts.tolist(), strict=True)] == [[3, 1, 4, 2], [3, 1], [0]]

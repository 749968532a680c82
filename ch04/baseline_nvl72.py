"""Baseline: one ring over all ranks, written out: every byte of it passes both links between the domains."""

import torch
from shared_hierarchy import flat
from shared_messages import all_reduce, halves


def prepare(gradient, crossed, rank, ranks):
    domains = halves(ranks)
    rounds = flat(domains, len(gradient))
    reduced, inbox = torch.empty_like(gradient), torch.empty_like(gradient)

    def step():
        reduced.copy_(gradient)
        crossed.fill_(all_reduce(rounds, rank, domains, reduced, inbox))
        return reduced

    return step

"""Optimized: add up inside each domain before anything crosses."""
# predicts: baseline crossing_bytes 201 MB = 2 * 2 * 3 / 4 * 4 * elements on h100  (four ranks: two links, 3/4 of the bytes twice)
# predicts: optimized crossing_bytes 134 MB = 2 * 4 * elements on h100  (each domain sends its sums once)
# proves: launches in nccl < 0.9 x baseline

import torch
from shared_hierarchy import hierarchical
from shared_messages import all_reduce, halves


def prepare(gradient, crossed, rank, ranks):
    domains = halves(ranks)
    rounds = hierarchical(domains, len(gradient))
    reduced, inbox = torch.empty_like(gradient), torch.empty_like(gradient)

    def step():
        reduced.copy_(gradient)
        crossed.fill_(all_reduce(rounds, rank, domains, reduced, inbox))
        return reduced

    return step

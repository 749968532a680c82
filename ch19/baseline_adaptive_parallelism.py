"""Baseline: tensor parallelism for every batch, whether it is a prompt or a decoding step."""

from shared_mlp_layouts import tensor_parallel


def prepare(decodes, prompts, weights, rank, ranks):
    return lambda: tuple(tensor_parallel(x, weights, rank, ranks) for x in (prompts, *decodes))

"""kernels look pages up: nothing is gathered."""

import torch
from shared_mixed_steps import EPS
from shared_paged_prefill import steps_of
from torch.nn.functional import rms_norm


def prepare(prompt, queries, keys, values, table, lengths, norm, weight, context, chunk):
    attended, steps = steps_of(prompt, queries, keys, values, table, lengths, context, chunk)
    y = weight.new_empty(*queries.shape[:2], len(weight))

    def step():
        for out, (prefill, decode) in zip(y, steps, strict=True):
            prefill()
            torch.mm(rms_norm(decode().flatten(1), norm.shape, norm, EPS), weight.T, out=out)
        return attended, y

    return step

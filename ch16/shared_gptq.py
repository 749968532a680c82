"""GPTQ (arXiv:2210.17323): columns are rounded one after another, and those still to come are moved to make up for the error."""

import torch
from shared_int4 import GROUP, Int4, grouped, ranges, rounded

DAMPING = 0.01  # of the mean of the Hessian's diagonal


def inverse_factor(samples, group):
    """The upper Cholesky factor of the inverse of samples^T samples, its columns in the order of `grouped`."""
    x = grouped(samples, group).flatten(1)
    hessian = x.T @ x
    hessian.diagonal().add_(DAMPING * hessian.diagonal().mean())
    return torch.linalg.cholesky(torch.cholesky_inverse(torch.linalg.cholesky(hessian)), upper=True)


def gptq(w, samples, group=GROUP):
    """[rows, k] rounded so that the products with `samples`, [tokens, k], change little: Int4."""
    w, factor = grouped(w, group).clone(), inverse_factor(samples, group)
    parts = []
    for g in range(w.shape[1]):
        block = w[:, g]  # [rows, group]
        scale, zero = ranges(block)
        codes, errors = torch.empty_like(block, dtype=torch.uint8), torch.empty_like(block)
        at = g * group
        for i in range(group):
            codes[:, i : i + 1] = rounded(block[:, i : i + 1], scale, zero)
            restored = (codes[:, i : i + 1] - zero) * scale
            errors[:, i : i + 1] = (block[:, i : i + 1] - restored) / factor[at + i, at + i]
            block[:, i:] -= errors[:, i : i + 1] * factor[at + i, at + i : at + group]
        w[:, g + 1 :] -= (errors @ factor[at : at + group, at + group :]).view_as(w[:, g + 1 :])
        parts.append((codes, scale, zero))
    return Int4(*(torch.stack(each, 1) for each in zip(*parts, strict=True)))

"""NVFP4: e2m1 values, two a byte, the first in the low bits; an e4m3 scale for each 16 of a row; and one float32 factor per tensor."""

from typing import NamedTuple

import torch
from torch.nn.functional import rms_norm, silu

BLOCK = 16
VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
BETWEEN = (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0)  # where the nearest value changes
E4M3_MOST = 448.0


class Nvfp4(NamedTuple):
    """Bytes [rows, k / 2], scales [rows, k / 16] in float8_e4m3fn, and `factor` [1] in float32."""

    packed: torch.Tensor
    scales: torch.Tensor
    factor: torch.Tensor


def quantized(w):
    """The nearest codes for w, [rows, k]: the largest of each 16 becomes about 6, that of the tensor 6 * 448 * factor.

    Raises RuntimeError where k is no multiple of 16.
    """
    blocks = w.float().unflatten(1, (-1, BLOCK))
    most = blocks.abs().amax(-1, keepdim=True)
    factor = (most.amax() / (VALUES[-1] * E4M3_MOST)).clamp(min=2.0**-100).view(1)
    scales = (most / (VALUES[-1] * factor)).clamp(min=2.0**-9).to(torch.float8_e4m3fn)  # the least that e4m3 has: no division by 0
    scaled = blocks / (scales.float() * factor)
    codes = torch.bucketize(scaled.abs(), torch.tensor(BETWEEN, device=w.device)) + 8 * (scaled < 0)
    low, high = codes.flatten(1).to(torch.uint8).unflatten(1, (-1, 2)).unbind(-1)
    return Nvfp4((low | high << 4).contiguous(), scales.squeeze(-1), factor)


def restored(q):
    """The weights that codes stand for, [rows, k] in float32."""
    values = torch.tensor([*VALUES, *(-value for value in VALUES)], device=q.packed.device)
    both = torch.stack((values[(q.packed & 15).int()], values[(q.packed >> 4).int()]), -1).flatten(-2)
    return (both.unflatten(-1, (-1, BLOCK)) * q.scales.float()[..., None]).flatten(-2) * q.factor


def mlp(x, norm, gate_up, down):
    """The feed-forward half of a layer and the next norm; `gate_up` and `down` are functions that multiply by the weights."""
    gate, up = gate_up(rms_norm(x, x.shape[-1:], norm)).chunk(2, -1)
    return rms_norm(down(silu(gate) * up), x.shape[-1:])

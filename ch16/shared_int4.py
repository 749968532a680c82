"""Weights in 4 bits: value = scale * (code - zero), with a float16 scale and a zero point for each `group` weights of a row.

The row of k weights is cut into eighths, and a 32-bit word has one weight of each: of eighth j in bits 4j to 4j + 3. So neighbouring
words need neighbouring inputs. A group is the weights of group / 8 neighbouring words, [rows, groups, group] here, eighth by eighth.
"""

from typing import NamedTuple

import torch

GROUP = 128


class Int4(NamedTuple):
    """Codes of 0 to 15 [rows, groups, group] in uint8, scales and zero points [rows, groups, 1] in float32, rounded to float16."""

    codes: torch.Tensor
    scale: torch.Tensor
    zero: torch.Tensor


def grouped(w, group=GROUP):
    """[rows, k] by groups, in float32: [rows, groups, group]. Raises RuntimeError where k is no multiple of `group`."""
    return w.float().view(len(w), 8, -1, group // 8).transpose(1, 2).reshape(len(w), -1, group)


def ungrouped(w):
    """The inverse of `grouped`."""
    rows, groups, group = w.shape
    return w.view(rows, groups, 8, group // 8).transpose(1, 2).reshape(rows, groups * group)


def ranges(w):
    """Scale and zero point that map the smallest of the last dimension, or 0, to code 0 and the largest to 15."""
    low, high = w.amin(-1, keepdim=True).clamp(max=0), w.amax(-1, keepdim=True).clamp(min=0)
    scale = ((high - low) / 15).clamp(min=2.0**-14).half().float()
    return scale, (-low / scale).round().clamp(0, 15)


def rounded(w, scale, zero):
    """The nearest codes."""
    return (w / scale + zero).round().clamp(0, 15).to(torch.uint8)


def nearest(w, group=GROUP):
    """[rows, k], every weight rounded to the nearest code."""
    w = grouped(w, group)
    scale, zero = ranges(w)
    return Int4(rounded(w, scale, zero), scale, zero)


def restored(q):
    """The weights that codes stand for: [rows, k] in float32."""
    return ungrouped((q.codes - q.zero) * q.scale)

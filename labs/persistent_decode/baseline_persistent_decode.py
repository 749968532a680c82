"""Baseline: compiled, and captured as one CUDA graph."""

import torch
from shared_decode import decode

from common.graph import captured


def prepare(token, embedding, qkv, o, gate_up, down, norms, last_norm, turn, keys, values):
    compiled = torch.compile(decode, fullgraph=True, dynamic=False)
    return captured(lambda: compiled(token, embedding, qkv, o, gate_up, down, norms, last_norm, turn, keys, values))

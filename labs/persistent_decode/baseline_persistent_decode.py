"""Baseline: PyTorch's operators, captured once as a CUDA graph."""

from shared_decode import decode

from common.graph import captured


def prepare(token, embedding, qkv, o, gate_up, down, norms, last_norm, turn, keys, values):
    return captured(lambda: decode(token, embedding, qkv, o, gate_up, down, norms, last_norm, turn, keys, values))

"""A SwiGLU layer, as decoders have it between two attentions."""

import torch
from torch.nn.functional import silu


def swiglu(x, gate_up, down, out=None):
    """[rows, width], in `out` if it is given, from x [rows, width], gate_up [width, 2 inner] and down [inner, width]."""
    gate, up = torch.chunk(x @ gate_up, 2, dim=1)
    return torch.mm(silu(gate) * up, down, out=out)

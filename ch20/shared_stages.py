"""A layer over several tokens."""

import torch


def advance(below, before, w, u, states):
    """Fill `states` [tokens, batch, width] with a layer's answers to `below`, the answers of the layer below; `before` is its last state.

    The products with w depend on no state of this layer, so they are one product over all tokens. The rest is in place: `addmm` into
    another tensor would first copy its first operand there.
    """
    torch.mm(below.flatten(0, 1), w, out=states.flatten(0, 1))
    for state in states:
        before = state.addmm_(before, u).tanh_()

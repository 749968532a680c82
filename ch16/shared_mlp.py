"""The feed-forward half of a decoder layer of Llama's kind, without its residual, and the norm behind it."""

from torch.nn.functional import rms_norm, silu


def mlp(x, norm, gate_up, down):
    """Tokens, [tokens, hidden], to a root mean square of 1 a token; `gate_up` and `down` are functions that multiply by the weights."""
    gate, up = gate_up(rms_norm(x, x.shape[-1:], norm)).chunk(2, -1)
    return rms_norm(down(silu(gate) * up), x.shape[-1:])

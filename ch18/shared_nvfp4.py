"""The feed-forward half of a layer, whose products are functions, and NVFP4 to make them of."""

from torch.nn.functional import rms_norm, silu

from common.block_formats import Nvfp4, nvfp4, nvfp4_restored

__all__ = ["Nvfp4", "mlp", "quantized", "restored"]

quantized, restored = nvfp4, nvfp4_restored


def mlp(x, norm, gate_up, down):
    """The feed-forward half of a layer and the next norm; `gate_up` and `down` are functions that multiply by the weights."""
    gate, up = gate_up(rms_norm(x, x.shape[-1:], norm)).chunk(2, -1)
    return rms_norm(down(silu(gate) * up), x.shape[-1:])

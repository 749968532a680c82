"""The experts of a layer in MXFP4, as published: a token's slot reads the packed matrix of its expert."""

import torch
from shared_mxfp4_gemv import multiply

from common.models.layers import activated


@torch.library.custom_op("ultimate_moe_inference::product", mutates_args=())
def _product(blocks: torch.Tensor, scales: torch.Tensor, biases: torch.Tensor, x: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    return multiply(blocks, scales, biases, x, chosen)


@_product.register_fake
def _(blocks, scales, biases, x, chosen):
    return x.new_empty(chosen.numel(), scales.shape[1])


def in_four_bits(config, packed):
    """Two products by packed weights, which the kernel unpacks in registers. The compiler sees each as one operator."""

    def mixture(layer, h, chosen, shares):
        inner = activated(config, _product(*packed[layer]["gate_up"], h, chosen))
        answers = _product(*packed[layer]["down"], inner, chosen)
        return torch.bmm(shares[:, None], answers.view(*chosen.shape, -1)).squeeze(1)

    return mixture

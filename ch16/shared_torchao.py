"""A product with torchao's 4-bit weights, in groups of 128: PyTorch's tinygemm kernel, which multiplies in bf16. It is compiled."""

import torch


def linear(weight, chosen):
    """A function from [1, k] to [1, rows], in its input's dtype; `chosen` finds scales and zero points: "tinygemm", "hqq"."""
    from torchao.quantization import Int4WeightOnlyConfig, quantize_  # optional: without it the library's side alone is left out

    layer = torch.nn.Linear(*weight.shape[::-1], bias=False, device="meta")
    layer.weight = torch.nn.Parameter(weight, requires_grad=False)
    options = {"int4_packing_format": "tile_packed_to_4d", "int4_choose_qparams_algorithm": chosen, "set_inductor_config": False}
    quantize_(layer, Int4WeightOnlyConfig(group_size=128, **options))
    return torch.compile(layer, fullgraph=True, dynamic=False)  # as torchao's documentation advises

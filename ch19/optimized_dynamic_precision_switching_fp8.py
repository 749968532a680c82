"""FP8 in every step: faster than switching, and exact enough."""
# predicts: optimized 41.6 ms = count * (4 * (3 * 4096 * intermediate + 6 * 4096**2) / dram_read + 240e-6) on h100
# proves: kernel switched_gemv
# proves: counter dram__bytes_read.sum < 0.7 x baseline

import torch
from shared_switched_product import multiply, narrowed
from shared_text_decode import reader

from common.graph import captured
from common.models.layers import activated


def prepare(weights, config, tokens):
    device = tokens.device
    always = torch.ones(1, dtype=torch.int32, device=device)
    held = {name: narrowed(w)[:2] for name, w in weights.items() if name.endswith(("gate_up", "down"))}

    def feed(weights, config, layer, x):
        gate_up, down = f"layers.{layer}.gate_up", f"layers.{layer}.down"
        inner = activated(config, multiply(weights[gate_up], *held[gate_up], always, x))
        return multiply(weights[down], *held[down], always, inner.contiguous())

    read, out = reader(weights, config, tokens, feed)
    launch = captured(read)

    def step():
        launch()
        return out

    return step

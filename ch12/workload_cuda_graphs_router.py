"""A quantized model that decodes token by token: a router picks one of four experts of 1, 2, 4 or 8 int8 layers for each token.

Predicted: 1.9x. Per token the baseline waits for the router's choice to reach the host before it can launch the expert's layers.
Inside the graph a SWITCH node reads the choice, so only the device's own time is left.

Measured: RESULTS.md. The output `counts` is how often each branch ran; the referee checks it against its own routing.

Why: the expert of token t is not known before token t - 1 is done, so the host cannot launch that expert ahead. The step `all_layers`
launches eight layers per token ahead, in a plain graph; those that the expert lacks return at once.
"""
# traffic: a call reads the layers of the experts that were chosen, and reads them again for other tokens from the L2

import torch

from common import Spec, Workload

DEPTHS = (1, 2, 4, 8)  # layers of each expert
SHIFT = 9  # after a product with weights of -128 to 127: keeps activations of 512 or fewer in the range of int8


def inputs(rand, tokens, dim):
    return {
        "x": rand.integers(tokens, dim, low=-64, high=64, dtype=torch.int8),
        "gate": rand.integers(len(DEPTHS), dim, low=-128, high=128, dtype=torch.int8),
        "weight": rand.integers(sum(DEPTHS), dim, dim, low=-128, high=128, dtype=torch.int8),
    }


def reference(x, gate, weight):
    """The state after each token, and how often each expert was chosen: int32, exact, as sums of integers in float64 are."""
    wide_gate, wide_weight = gate.double(), weight.double()
    state, counts, states = torch.zeros_like(x[0], dtype=torch.float64), [0] * len(DEPTHS), []
    for token in x.double():
        state = (state + token).clamp(-128, 127)
        expert = int((wide_gate @ state).argmax())
        counts[expert] += 1
        first = sum(DEPTHS[:expert])
        for layer in wide_weight[first : first + DEPTHS[expert]]:
            state = (layer @ state / 2**SHIFT).floor().clamp(-128, 127)
        states.append(state.to(torch.int32))
    return torch.stack(states), torch.tensor(counts, dtype=torch.int32, device=x.device)


WORKLOAD = Workload(
    inputs=inputs,
    outputs=lambda tokens, dim: {"y": Spec((tokens, dim), torch.int32), "counts": Spec((len(DEPTHS),), torch.int32)},
    reference=reference,
    time_at={"tokens": 16, "dim": 512},  # a layer of 256 KB: some two microseconds, shorter than a launch
    check_at=({"tokens": 1, "dim": 32}, {"tokens": 5, "dim": 96}, {"tokens": 16, "dim": 64}),
    # The least: every token may choose the expert of one layer.
    work=lambda tokens, dim: {"launch": 1, "dram_read": dim * dim, "dram_write": 4 * tokens * dim},
    rtol=0.0,  # integers are exact
    atol=0.0,
    clock="launch",
    ladder=("all_layers",),
)

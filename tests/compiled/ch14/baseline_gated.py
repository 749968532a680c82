"""Baseline: eager PyTorch, whose branch waits for the device."""
# allows: sync

from torch.nn.functional import silu


def prepare(x, w):
    def step():
        h = x @ w
        peak = h.abs().amax()
        if peak.item() > 2:
            h = h * (2 / peak)
        return x + silu(h)

    return step

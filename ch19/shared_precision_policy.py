"""Which weights the next step reads: entropy, error and free memory behind one policy with hysteresis, decided on the device."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Policy:
    """Narrow weights while the model is sure of what comes next, or memory is scarce; never where they are too inexact.

    `sure` and `unsure` are entropies in nats: `patience` steps below the first switch to narrow, one above the second switches back.
    `scarce` and `ample` are shares of the device's memory that are free. `bound` is the largest relative error of narrow weights.
    Reading narrow weights frees memory only in an engine that then drops the others; the pair holds both.
    """

    sure: float = 1.5
    unsure: float = 2.5
    patience: int = 2
    scarce: float = 0.05
    ample: float = 0.10
    bound: float = 0.04

    def update(self, state, entropy, error, free):
        """Change `state`, int32 [2]: 1 for narrow, and how many sure steps came in a row. The others are float32 []."""
        narrow = state[0] == 1
        streak = torch.where(entropy < self.sure, state[1] + 1, 0)
        confident = torch.where(narrow, entropy < self.unsure, streak >= self.patience)
        pressed = free < torch.where(narrow, self.ample, self.scarce)
        state.copy_(torch.stack(((confident | pressed) & (error <= self.bound), streak)))


def entropy_of(logits):
    """Nats of the least sure sequence, float32 [], of logits [sequences, vocabulary]; a mean would hide it."""
    log_share = logits.float().log_softmax(-1)
    return (log_share.exp() * -log_share).sum(-1).amax()


def free_share(device):
    """The share of the device's memory that the driver has free, 1 without a GPU.

    The driver can take milliseconds to answer (github.com/sgl-project/sglang, issue 25225): ask where memory is taken, not in every step.
    """
    if device.type != "cuda":
        return 1.0
    free, total = torch.cuda.mem_get_info(device)
    return free / total

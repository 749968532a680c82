"""A trained language model of bytes at a large model's cost, and its traffic.

The weights are byte_lm's, grown so that they compute the same function. They are float32, so that one wrong block of a long prompt's can
be told from rounding.
"""

import torch

from common import Traffic
from common.models import byte_server
from common.models.byte_server import arrivals_at, prompts, trained_logits

__all__ = ["ATOL", "grown_inputs", "traffic_of", "trained_logits"]

# Standard deviations of a row. On a CPU float32 is off by 5e-6 at the most; a stale block of 16 tokens moved a prompt of 1568 by 0.0016.
ATOL = 5e-4


def grown_inputs(rand, width):
    """`weights` and `config` of byte_lm, `width` times as wide."""
    return byte_server.grown_inputs(rand, width, 0, dtype=torch.float32)


def traffic_of(requests, prompt, longest, load):
    """Prompts of 32 to `prompt` bytes, answers of `longest` / 4 to `longest`, at the share `load` of saturation; 0: all at once."""
    lengths = {"prompt_tokens": (min(32, prompt), prompt), "output_tokens": (max(1, longest // 4), longest)}
    return Traffic(count=requests, **lengths, arrivals=arrivals_at(load), prompts=prompts)

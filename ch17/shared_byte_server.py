"""A trained language model of bytes at a large model's cost, and its traffic.

The weights are byte_lm's, grown so that they compute the same function. They are float32, so that one wrong block of a long prompt's can
be told from rounding.
"""

import functools
import sysconfig
from dataclasses import replace
from pathlib import Path

import torch

from common import Traffic
from common.models.config import byte_lm
from common.models.decoder import reference_logits
from common.models.grow import grow, grown_config, shrink

FILES = ("inspect.py", "subprocess.py", "tarfile.py", "typing.py")

# Standard deviations of a row. On a CPU float32 is off by 5e-6 at the most; a stale block of 16 tokens moved a prompt of 1568 by 0.0016.
ATOL = 5e-4


def grown_inputs(rand, width):
    """`weights` and `config` of byte_lm, `width` times as wide."""
    trained = replace(byte_lm(), dtype=torch.float32)
    config = grown_config(trained, width=width, layers=0)
    return {"config": config, "weights": grow(rand.asset("byte_lm"), trained, config, rand)}


def trained_logits(weights, config, tokens, first):
    """What the grown weights say, computed from the trained ones among them: float32, a row behind each of tokens[first:]."""
    trained = byte_lm()
    return reference_logits(shrink(weights, trained, config), trained, tokens, first)


@functools.cache
def _text():
    library = Path(sysconfig.get_paths()["stdlib"])
    return b"".join((library / name).read_bytes() for name in FILES)


def prompts(rng, count):
    """`count` bytes of text from a random place."""
    start = rng.randrange(len(_text()) - count)
    return _text()[start : start + count]


def traffic_of(requests, prompt, longest, load):
    """Prompts of 32 to `prompt` bytes, answers of `longest` / 4 to `longest`, at the share `load` of saturation; 0: all at once."""
    arrivals = ("of_saturation", load) if load else "at_once"
    lengths = {"prompt_tokens": (min(32, prompt), prompt), "output_tokens": (max(1, longest // 4), longest)}
    return Traffic(count=requests, **lengths, arrivals=arrivals, prompts=prompts)

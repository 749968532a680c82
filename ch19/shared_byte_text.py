"""A trained language model of bytes at a large model's cost, and text of Python's standard library.

The weights are byte_lm's, grown so that they compute the same function: what was added costs what it costs and changes no answer.
"""

import functools
import sysconfig
from dataclasses import replace
from pathlib import Path

import torch

from common.models.config import byte_lm
from common.models.decoder import reference_logits
from common.models.grow import grow, grown_config, shrink

FILES = ("inspect.py", "subprocess.py", "tarfile.py", "typing.py")


def grown_inputs(rand, width, intermediate=None, dtype=torch.bfloat16):
    """`weights` and `config` of byte_lm, `width` times as wide, with feed-forwards of `intermediate` elements."""
    trained = replace(byte_lm(), dtype=dtype)
    config = grown_config(trained, width=width, intermediate=intermediate)
    return {"config": config, "weights": grow(rand.asset("byte_lm"), trained, config, rand)}


def trained_logits(weights, config, tokens, first):
    """What the grown weights say, computed from the trained ones among them: float32, a row behind each of tokens[first:]."""
    trained = byte_lm()
    return reference_logits(shrink(weights, trained, config), trained, tokens, first)


@functools.cache
def text():
    """The bytes of FILES, one after the other."""
    library = Path(sysconfig.get_paths()["stdlib"])
    return b"".join((library / name).read_bytes() for name in FILES)


def prompts(rng, count):
    """`count` bytes of text from a random place, for a client."""
    start = rng.randrange(len(text()) - count)
    return text()[start : start + count]


def drawn_text(rand, *shape):
    """int64 of `shape`: bytes of text, each row from a place that `rand` draws."""
    data = torch.frombuffer(bytearray(text()), dtype=torch.uint8)
    starts = rand.integers(*shape[:-1], 1, low=0, high=len(data) - shape[-1])
    at = starts + torch.arange(shape[-1], device=starts.device)
    return rand.place(data.to(starts.device)[at].long(), "device")

"""A trained language model of bytes at a large model's cost, and prompts from Python's standard library.

The weights are byte_lm's, grown so that they compute the same function: what was added costs what it costs and changes no answer.
"""

from __future__ import annotations

import functools
import random
import sysconfig
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from common.models.config import Config, byte_lm
from common.models.decoder import reference_logits
from common.models.grow import grow, grown_config, shrink

FILES = ("inspect.py", "subprocess.py", "tarfile.py", "typing.py")

# Standard deviations of a row. On a CPU bfloat16 is up to 0.09 off float32. With prompts of at most 48 bytes and answers of 32 or more,
# none of 800 stale blocks of 16 bytes had an effect of less than 0.22; with prompts of 128 the answers to 0.4 % of them looked right.
ATOL = 0.13


def grown_inputs(
    rand: Any, width: int, more_layers: int, intermediate: int | None = None, dtype: torch.dtype = torch.bfloat16
) -> dict[str, Any]:
    """`weights` and `config` of byte_lm, `width` times as wide, with `more_layers`, and feed-forwards of `intermediate` elements."""
    trained = replace(byte_lm(), dtype=dtype)
    config = grown_config(trained, width=width, layers=more_layers, intermediate=intermediate)
    return {"config": config, "weights": grow(rand.asset("byte_lm"), trained, config, rand)}


def trained_logits(weights: dict[str, torch.Tensor], config: Config, tokens: torch.Tensor, first: int) -> torch.Tensor:
    """What the grown weights say, computed from the trained ones among them: float32, a row behind each of tokens[first:]."""
    trained = byte_lm()
    return reference_logits(shrink(weights, trained, config), trained, tokens, first)


@functools.cache
def _text() -> bytes:
    library = Path(sysconfig.get_paths()["stdlib"])
    return b"".join((library / name).read_bytes() for name in FILES)


def prompts(rng: random.Random, count: int) -> bytes:
    """`count` bytes of text from a random place."""
    start = rng.randrange(len(_text()) - count)
    return _text()[start : start + count]


def arrivals_at(load: float) -> tuple[str, float] | str:
    """Poisson arrivals at the share `load` of saturation; 0: all at once."""
    return ("of_saturation", load) if load else "at_once"

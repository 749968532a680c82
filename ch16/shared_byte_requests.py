"""A trained language model of bytes at a large model's cost, and requests whose prompts branch as a tree does.

The weights are byte_lm's, grown so that they compute the same function: what was added costs what it costs and changes no answer.
"""

import functools
import sysconfig
from dataclasses import replace
from pathlib import Path
from weakref import WeakKeyDictionary

from common.models.config import byte_lm
from common.models.decoder import reference_logits
from common.models.grow import grow, grown_config, shrink

FILES = ("inspect.py", "subprocess.py", "tarfile.py", "typing.py")


def grown_inputs(rand, width, more_layers, dtype):
    """`weights` and `config` of byte_lm, `width` times as wide, with `more_layers`."""
    config = grown_config(trained := replace(byte_lm(), dtype=dtype), width=width, layers=more_layers)
    return {"config": config, "weights": grow(rand.asset("byte_lm"), trained, config, rand)}


def trained_logits(weights, config, tokens, first):
    """What the grown weights say, computed from the trained ones among them: float32, a row behind each of tokens[first:]."""
    return reference_logits(shrink(weights, byte_lm(), config), byte_lm(), tokens, first)


@functools.cache
def _text():
    return b"".join(Path(sysconfig.get_paths()["stdlib"], name).read_bytes() for name in FILES)


def text(rng, count):
    """`count` bytes of text from a random place."""
    start = rng.randrange(len(_text()) - count)
    return _text()[start : start + count]


class Branching:
    """Prompts of a system text, of half to all of `system` tokens, one of its documents alike, and a question; drawn anew each trace."""

    def __init__(self, systems, documents, system, document):
        self._counts, self._most = (systems, documents), (system, document)
        self._trees = WeakKeyDictionary()  # by a trace's generator

    def __call__(self, rng, count):
        """`count` bytes, more than a system text and a document have."""
        if rng not in self._trees:
            self._trees[rng] = [self._branch(rng) for _ in range(self._counts[0])]
        system, documents = rng.choice(self._trees[rng])
        begin = system + rng.choice(documents)
        return begin + text(rng, count - len(begin))

    def _branch(self, rng):
        lengths = [rng.randint(most // 2, most) for most in (self._most[0], *[self._most[1]] * self._counts[1])]
        system, *documents = [text(rng, length) for length in lengths]
        return system, documents

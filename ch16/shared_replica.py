"""A decoder of Llama's layers: its configuration, its weights as parts of one flat tensor, and decode steps of given tokens."""

import math

import torch

from common.graph import captured
from common.models.config import Config
from common.models.decoder import shapes
from common.serving.dense_cache import DenseCache, dense_step


def config_of(dtype, *, layers, hidden, inner, heads, kv_heads, vocabulary, **_):
    """Llama's layer, without weights of norms, and one matrix for embedding and head; other entries of a shape are left alone."""
    sizes = {"heads": heads, "kv_heads": kv_heads, "head_dim": hidden // heads, "intermediate": inner}
    return Config(vocabulary=vocabulary, hidden=hidden, layers=layers, **sizes, tied=True, learned_norms=False, dtype=dtype)


def elements_of(config):
    return sum(math.prod(shape) for shape in shapes(config).values())


def views(flat, config):
    """The weights by name, in a flat tensor that may be longer."""
    found, start = {}, 0
    for name, shape in shapes(config).items():
        found[name] = flat[start : start + math.prod(shape)].view(shape)
        start += math.prod(shape)
    return found


class Decoding:
    """Decode steps over a cache that outlives the weights: keys and values of earlier tokens stay what older weights made them."""

    def __init__(self, config, sequences, steps, device):
        self.config, self.cache = config, DenseCache(config, sequences=sequences, capacity=steps, device=device)

    def begin(self, at=0):
        """The next step is number `at`."""
        self.cache.length = at

    def run(self, weights, tokens):
        """Logits behind each row of `tokens`, [steps, sequences]: a list of [sequences, vocabulary]."""
        return [dense_step(weights, self.config, self.cache, row[:, None])[:, 0] for row in tokens]

    def graph(self, weights, tokens, steps, logits):
        """One CUDA graph of the `steps` from one number to another: each reads its row of `tokens` and writes its row of `logits`."""
        rows = slice(*steps)

        def call():
            self.begin(rows.start)  # a graph's steps stand where they stood when it was captured
            torch.stack(self.run(weights, tokens[rows]), out=logits[rows])

        return captured(call)

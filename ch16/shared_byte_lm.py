"""What quantizing costs a trained model: the negative log-likelihood of byte_lm, in nats a byte of files it was not trained on."""

import functools
import sysconfig
from pathlib import Path

import torch
from torch.nn import functional

from common import Metric, models
from common.models.config import byte_lm
from common.models.decoder import fused_attention, logits
from common.models.layers import activated, rms_norm, rotate, rotation
from common.models.train_byte_lm import HELD_OUT, library_files
from common.tensor_files import read_tensors

CONFIG = byte_lm()
WEIGHTS = Path(models.__file__).parent / "assets" / "byte_lm.safetensors"
GROUP = 64  # its rows of 704 weights are no multiple of 128
TOKENS = 512  # bytes a sequence
FOUND = {}  # what the side of this process has found: name -> (sequences, nats a byte); the model is the same for all shapes


@functools.cache
def text(first, sequences):
    """[sequences, TOKENS + 1] bytes from all over every twentieth file of the standard library, from file `first` on; 0 is held out."""
    files = list(library_files(Path(sysconfig.get_paths()["stdlib"])))[first::HELD_OUT]
    data = torch.frombuffer(bytearray().join(file.read_bytes() for file in files), dtype=torch.uint8)
    return data[torch.linspace(0, len(data) - TOKENS - 1, sequences).long()[:, None] + torch.arange(TOKENS + 1)].long()


def scores(weights, tokens, linear):
    """Logits behind every token, [sequences, tokens, 256]; `linear(name, x)` multiplies by weight `name`."""
    x = functional.embedding(tokens, weights["embedding"])
    turn = rotation(CONFIG, torch.arange(tokens.shape[1], device=x.device), x.dtype)
    for name in (f"layers.{layer}" for layer in range(CONFIG.layers)):
        h = rms_norm(x, weights[f"{name}.attention_norm"], CONFIG.norm_eps)
        q, k, v = (linear(f"{name}.{part}", h).unflatten(-1, (-1, CONFIG.head_dim)) for part in "qkv")
        x = x + linear(f"{name}.o", fused_attention(0, rotate(q, turn), rotate(k, turn), v).flatten(-2))
        h = rms_norm(x, weights[f"{name}.feed_forward_norm"], CONFIG.norm_eps)
        x = x + linear(f"{name}.down", activated(CONFIG, linear(f"{name}.gate_up", h)))
    return logits(weights, CONFIG, rms_norm(x, weights["norm"], CONFIG.norm_eps))


@torch.no_grad()
def find(label, sequences, device, quantize=None):
    """Keep the likelihood under `label`, with each product's weight replaced by quantize(weight, its inputs [tokens, k])."""
    if FOUND.get(label, (0,))[0] == sequences:
        return
    seen, weights = {}, {name: weight.float() for name, weight in read_tensors(WEIGHTS.read_bytes(), device).items()}
    if quantize:
        scores(weights, text(1, 2).to(device)[:, :-1], lambda name, x: functional.linear(seen.setdefault(name, x), weights[name]))
    replaced = {name: quantize(weights[name], x.flatten(0, -2)) for name, x in seen.items()}
    tokens = text(0, sequences).to(device)
    found = scores(weights, tokens[:, :-1], lambda name, x: functional.linear(x, replaced.get(name, weights[name])))
    FOUND[label] = sequences, functional.cross_entropy(found.flatten(0, 1), tokens[:, 1:].flatten())


def metrics():
    return {name: Metric(value.item(), "nats/byte", "lower") for name, (_, value) in FOUND.items()}

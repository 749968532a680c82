"""byte_lm, trained from random weights with any linear layer: what it loses to float32."""

import math
from dataclasses import replace

import torch
from torch.nn import functional

from common import Metric
from common.models.config import byte_lm
from common.models.decoder import fused_attention, logits
from common.models.layers import activated, rms_norm, rotate, rotation
from common.models.train_byte_lm import rate_at

CONFIG = replace(byte_lm(), dtype=torch.float32)
UNTRAINED = math.log(CONFIG.vocabulary)  # nats a byte of who holds all bytes for equally likely
FOUND = {"loss": UNTRAINED, "loss_in_float32": UNTRAINED}  # what the side of this process has found, and the shape of its texts


def loss_of(weights, tokens, linear):
    """Nats a byte, of each byte behind the first of tokens [sequences, bytes + 1]. The head is no linear layer here."""
    x = functional.embedding(tokens[:, :-1], weights["embedding"])
    turn = rotation(CONFIG, torch.arange(x.shape[1], device=x.device), x.dtype)
    for name in (f"layers.{layer}" for layer in range(CONFIG.layers)):
        h = rms_norm(x, weights[f"{name}.attention_norm"], CONFIG.norm_eps)
        q, k, v = (linear(h, weights[f"{name}.{part}"]).unflatten(-1, (-1, CONFIG.head_dim)) for part in "qkv")
        x = x + linear(fused_attention(0, rotate(q, turn), rotate(k, turn), v).flatten(-2), weights[f"{name}.o"])
        h = rms_norm(x, weights[f"{name}.feed_forward_norm"], CONFIG.norm_eps)
        x = x + linear(activated(CONFIG, linear(h, weights[f"{name}.gate_up"])), weights[f"{name}.down"])
    scores = logits(weights, CONFIG, rms_norm(x, weights["norm"], CONFIG.norm_eps))
    return functional.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())


def trained_loss(start, texts, linear):
    """The mean loss of the last tenth of the steps of AdamW, float32 []: one for each of `texts`, int64 [steps, sequences, bytes + 1]."""
    weights = {name: weight.clone().requires_grad_() for name, weight in start.items()}
    optimizer = torch.optim.AdamW(weights.values(), betas=(0.9, 0.95), weight_decay=0.0, fused=texts.is_cuda)
    losses = []
    for step, text in enumerate(texts):
        loss = loss_of(weights, text, linear)
        loss.backward()
        optimizer.param_groups[0]["lr"] = rate_at((step + 1) / (len(texts) + 1))
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.detach())
    return torch.stack(losses[-max(len(texts) // 10, 1) :]).mean()


def find(start, texts, linear):
    """Keep what training with `linear` ends with, and what training in float32 does."""
    if FOUND.get("shape") != texts.shape:
        narrow, wide = (trained_loss(start, texts, each).item() for each in (linear, functional.linear))
        FOUND.update(shape=texts.shape, loss=narrow, loss_in_float32=wide)


def metrics():
    return {name: Metric(FOUND[name], "nats/byte", "lower") for name in ("loss", "loss_in_float32")}

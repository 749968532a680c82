"""What a training step is held to: gradients of attention written out, and AdamW by its paper."""

import torch
from shared_trainer import BETAS, DECAY, EPSILON, RATE, config_of, leaves_of, loss_of

from common.models.decoder import DenseAttention


def reference(weights, averages, squares, counts, text, width, layers):
    """Loshchilov and Hutter, arXiv:1711.05101, algorithm 2, on gradients of attention written out."""
    config = config_of(width, layers)
    leaves = leaves_of(weights, config)
    loss = loss_of(leaves, config, text, DenseAttention(leaves, config))
    gradients = torch.autograd.grad(loss, list(leaves.values()))
    counts += 1
    for i, gradient in enumerate(gradients):
        weights[i].mul_(1 - RATE * DECAY)
        averages[i].mul_(BETAS[0]).add_(gradient, alpha=1 - BETAS[0])
        squares[i].mul_(BETAS[1]).addcmul_(gradient, gradient, value=1 - BETAS[1])
        mean, square = averages[i] / (1 - BETAS[0] ** counts[i]), squares[i] / (1 - BETAS[1] ** counts[i])
        weights[i].addcdiv_(mean, square.sqrt() + EPSILON, value=-RATE)
    return loss.detach()

"""Optimized: FP8 blocks with scales: half the bytes travel, and gradients are added up in FP32 where they arrive."""
# predicts: baseline 1.40 ms = 2 * 3 * 2 * 256 * blocks / 300e9 + 2 * 30e-6 on h100  (four GPUs; guesses: 300 GB/s, a start 30 us)
# predicts: optimized 1.19 ms = 2 * 3 * 256 * blocks / 300e9 + 4 * 30e-6 + 33 * 256 * blocks / (0.9 * dram_copy) on h100  (plus kernels)

import torch
import torch.distributed as dist
from shared_fp8_blocks import dequantized, quantized

pack = torch.compile(quantized, dynamic=False)


@torch.compile(dynamic=False)
def unpacked(values, scales, ranks):
    return dequantized(values, scales).bfloat16().view(ranks, -1)


@torch.compile(dynamic=False)
def added(values, scales, ranks):
    """No reduce-scatter adds up scaled values: each hop would have to scale its sums again, and round them again."""
    return dequantized(values, scales).view(ranks, -1).sum(0).bfloat16()


def exchange(collective, parts, copies):
    received = [part.new_empty(copies * part.shape[0], part.shape[1]) for part in parts]
    for target, part in zip(received, parts, strict=True):
        collective(target, part)
    return received


def prepare(shard, gradients, ranks):
    def step():
        weights = unpacked(*exchange(dist.all_gather_into_tensor, pack(shard), copies=ranks), ranks)
        reduced = added(*exchange(dist.all_to_all_single, pack(gradients), copies=1), ranks)
        return weights, reduced

    return step

"""Optimized: FP8 blocks with scales travel; FP32 sums on arrival."""
# predicts: baseline 0.507 ms = 2 * 2 * 256 * blocks / 300e9 + 2 * 30e-6 on h200  (two GPUs; guesses: 300 GB/s, a start 30 us)
# predicts: optimized 0.508 ms = 2 * 256 * blocks / 300e9 + 4 * 30e-6 + 19 * 256 * blocks / (0.9 * dram_copy) on h200  (plus kernels)
# proves: kernel SendRecv

import torch
import torch.distributed as dist
from shared_fp8_blocks import added, quantized


def exchange(collective, values, scales, copies):
    """What `collective` brings of both, `copies` times as much as was given; values travel as bytes, which it needs not understand."""
    got_values = values.new_empty(copies * values.shape[0], values.shape[1])
    got_scales = scales.new_empty(copies * scales.shape[0], scales.shape[1])
    collective(got_values.view(torch.uint8), values.view(torch.uint8))
    collective(got_scales, scales)
    return got_values, got_scales


def prepare(shard, gradients, ranks):
    def step():
        weights = added(*exchange(dist.all_gather_into_tensor, *quantized(shard), copies=ranks))
        # No reduce-scatter adds up scaled values: each hop would have to scale its sums again, and round them again.
        reduced = added(*exchange(dist.all_to_all_single, *quantized(gradients), copies=1), terms=ranks)
        return weights.view(ranks, -1), reduced

    return step

"""Planted: every kernel that autotuning generates and tries fails, so PyTorch's own is left."""

import torch
from torch._inductor.select_algorithm import AlgorithmSelectorCache, ExternKernelCaller

measured = AlgorithmSelectorCache.benchmark_choice


def benchmark_choice(choice, *arguments):
    if not isinstance(choice, ExternKernelCaller):
        raise RuntimeError("planted: out of shared memory")
    return measured(choice, *arguments)


AlgorithmSelectorCache.benchmark_choice = benchmark_choice


@torch.compile(mode="max-autotune-no-cudagraphs", fullgraph=True, dynamic=False)
def batched(a, b):
    return torch.relu(a @ b)


def prepare(a, b):
    return lambda: batched(a, b)

"""Self-attention of documents with their scores materialized, within a budget of device memory."""

import contextlib

import torch


def pooled(x):
    """The mean over tokens of what attention makes of them, [documents, width], for x [documents, tokens, width]."""
    scores = torch.softmax(x @ x.mT * x.shape[-1] ** -0.5, dim=-1)
    return (scores @ x).mean(dim=1)


def taken(device):
    """Bytes that PyTorch's allocator cannot give back now: tensors, and the free rests of the segments that they lie in."""
    stats = torch.cuda.memory_stats(device)
    return stats["allocated_bytes.all.current"] + stats["inactive_split_bytes.all.current"]


def room(megabytes, device):
    """Bytes that tensors may still take: what is free on the device or in PyTorch's cache, within the limit. On a CPU the limit alone."""
    if device.type != "cuda":
        return int(megabytes * 1e6)
    free, total = torch.cuda.mem_get_info(device)
    limit = torch.cuda.get_per_process_memory_fraction(device) * total
    return int(min(free + torch.cuda.memory_reserved(device), limit) - taken(device))


@contextlib.contextmanager
def budget_of(megabytes, device):
    """PyTorch's allocator may take `megabytes` more than it cannot give back now; beyond, it raises torch.OutOfMemoryError."""
    if device.type != "cuda":  # no limit
        yield
        return
    total = torch.cuda.get_device_properties(device).total_memory
    torch.cuda.set_per_process_memory_fraction(min((taken(device) + megabytes * 1e6) / total, 1.0), device)
    try:
        yield
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0, device)

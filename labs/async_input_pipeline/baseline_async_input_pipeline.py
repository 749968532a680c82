"""Baseline: read a batch into a pinned buffer, copy it, score it; then the next."""
# allows: threads

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
from shared_reading import READERS, fill
from shared_scores import score


def prepare(file, weights, head, batches, rows, width, classes):
    host = torch.empty(rows, width, dtype=torch.uint8, pin_memory=head.is_cuda)
    scores = torch.empty(batches, rows, classes, dtype=head.dtype, device=head.device)
    synchronize = torch.get_device_module(head.device).synchronize
    readers = ThreadPoolExecutor(READERS)

    def step():
        with Path(file).open("rb", buffering=0) as records:
            for batch, out in enumerate(scores):
                fill(readers, records.fileno(), batch, host)
                score(host.to(head.device), weights, head, out)
        synchronize()
        return scores.flatten(0, 1)

    yield step
    readers.shutdown()

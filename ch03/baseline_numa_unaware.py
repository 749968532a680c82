"""Baseline: threads and pinned pages are wherever the scheduler ran the process."""

from shared_staging import staged


def prepare(batch, scale):
    return staged(batch, scale)

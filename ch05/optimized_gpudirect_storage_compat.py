"""Optimized: kvikio in compatibility mode, which is not direct."""
# needs: gpus 1, package kvikio
# predicts: optimized = 1.0 x baseline  (its threads read into pinned memory and copy, as the baseline's do)
# allows: threads

from shared_kvikio import by_kvikio


def prepare(file, order, records, record_bytes):
    yield from by_kvikio(file, order, records, record_bytes, "ON")

"""What every process that launches with Triton does first, done once, before such processes are forked."""

from __future__ import annotations

import contextlib
import functools
import gc
import time


@functools.cache
def start_triton() -> float:
    """Import Triton and have it read all of itself, 400 MB, for its caches' keys; the seconds that took, here or where this was forked.

    Where it cannot be imported nothing is done: a side that needs it says so better.
    """
    begin = time.perf_counter()
    with contextlib.suppress(ImportError):
        from triton.runtime.cache import triton_key

        triton_key()
        gc.freeze()
    return time.perf_counter() - begin

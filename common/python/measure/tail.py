"""What the GPU still had to do when a clock had stopped: work of a step that waits for the timed stream, and that nothing there waits for.

Behind the stop of a sample that is looked at stands a second event, which the driver puts behind all work of the context on any stream
(cuCtxRecordEvent). A result is a median of samples, so it is the median of looks that tells: a step that leaves work behind in fewer
than half of its samples gains nothing by it.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

_TAIL_NS = 5_000.0  # from the stop of a held stream to the event behind all: 1.5 to 2.4 us on an H200, where nothing is left
_LONE_TAIL_NS = 50_000.0  # of few samples, or where the host's time between the two events is in it
_SURE_SAMPLES = 3


def unfinished(behind_ns: Sequence[float], *, held: bool) -> str:
    """A sentence on work that a side leaves behind the clock, or nothing; of each sample, `held` or not, the ns until all was done."""
    limit_ns = _TAIL_NS if held and len(behind_ns) >= _SURE_SAMPLES else _LONE_TAIL_NS
    if not behind_ns or (tail_ns := statistics.median(behind_ns)) <= limit_ns:
        return ""
    found = f"found the GPU at work for {tail_ns / 1e3:.1f} us after the clock had stopped, in the median of {len(behind_ns)} samples"
    return f"{found}; expected all work done by then, and at most {limit_ns / 1e3:.0f} us"

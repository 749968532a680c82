"""How fast an engine ends answers, and so how long a new request will wait for a slot."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable


class Pace:
    """The pace of the last `recent` answers, on a clock in seconds."""

    def __init__(self, recent: int = 16, clock: Callable[[], float] = time.monotonic) -> None:
        self._ends: deque[float] = deque(maxlen=recent)
        self._clock = clock

    def ended(self) -> None:
        """An answer has ended now."""
        self._ends.append(self._clock())

    def wait_ms(self, ahead: int) -> float:
        """Milliseconds until `ahead` requests have got a slot; 0 where no answer has ended yet."""
        return 1e3 * ahead * (self._clock() - self._ends[0]) / len(self._ends) if self._ends else 0.0

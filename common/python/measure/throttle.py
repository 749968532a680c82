"""Heat in the window: a block that it fell into is taken again after a pause, and a device that stays hot ends the measurement."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from common.python.results import Block, TelemetrySummary

SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 0.5
MOST_LOST_S = 30.0
MOST_DISCARDED = 0.25  # of all blocks


class Watch(Protocol):
    """Who knows what the GPUs did."""

    def summary(self, since: float = 0.0) -> TelemetrySummary:
        """Everything from `since` (of `time.monotonic`, seconds) until now."""


class Throttle:
    """Takes blocks of samples, and counts those that a thermal or hardware slowdown spoilt. A power cap spoils nothing."""

    def __init__(self, watch: Watch, sleep: Callable[[float], None] = time.sleep) -> None:
        self._watch = watch
        self._sleep = sleep
        self._taken = 0
        self._lost_s = 0.0
        self.discarded = 0

    def take(self, block: Callable[[], Block]) -> Block:
        """A block that ran at full clocks; once too much time is lost, whatever block there is: there are never no samples."""
        pause = SHORTEST_PAUSE_S
        while True:
            begin = time.monotonic()
            taken = block()
            self._taken += 1
            if self.is_hopeless or not self._watch.summary(begin).throttled:
                return taken
            self.discarded += 1
            self._sleep(pause)
            self._lost_s += time.monotonic() - begin
            pause = min(2 * pause, LONGEST_PAUSE_S)

    @property
    def is_hopeless(self) -> bool:
        """Whether so much time was lost that nothing more is taken again."""
        return self._lost_s >= MOST_LOST_S

    @property
    def is_unfit(self) -> bool:
        """Whether the device throttled too much for what was measured to count."""
        return self.is_hopeless or self.discarded > MOST_DISCARDED * self._taken

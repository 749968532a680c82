"""Which setting of an engine gives most per second, found while it serves: UCB1 (Auer et al. 2002) with rewards that fade."""

from __future__ import annotations

import math
import time
from collections.abc import Callable


class Bandit:
    """Arms 0 to `count` - 1. Each is pulled for `plays` plays in a row, so that what it does to a queue counts as its own.

    `width` is how far above its mean an arm that was seldom pulled may lie, as a share of the best mean. A pull's weight falls by `forget`
    with every later pull. `clock` is in seconds.
    """

    def __init__(
        self, count: int, plays: int = 8, width: float = 0.5, forget: float = 0.99, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._sums, self._weights = [0.0] * count, [0.0] * count
        self._plays, self._width, self._forget, self._clock = plays, width, forget, clock
        self._arm, self._left, self._amount, self._seconds, self._start = 0, plays, 0.0, 0.0, 0.0
        self._pulls: list[int] = []

    def play(self) -> int:
        """The arm of the play that begins now."""
        self._start = self._clock()
        return self._arm

    def learn(self, amount: float) -> None:
        """The play that `play` began ends now and gave `amount`. A pull's reward is the amount of its plays over their seconds."""
        self._seconds += self._clock() - self._start
        self._amount, self._left = self._amount + amount, self._left - 1
        if self._left:
            return
        self._sums, self._weights = ([self._forget * each for each in kept] for kept in (self._sums, self._weights))
        self._sums[self._arm] += self._amount / max(self._seconds, 1e-9)
        self._weights[self._arm] += 1.0
        self._pulls.append(self._arm)
        self._arm, self._left, self._amount, self._seconds = self._next(), self._plays, 0.0, 0.0

    def _next(self) -> int:
        if 0.0 in self._weights:
            return self._weights.index(0.0)
        means, spread = self.means(), math.log(1 + sum(self._weights))
        reach = self._width * max(means)
        bounds = [mean + reach * math.sqrt(spread / weight) for mean, weight in zip(means, self._weights, strict=True)]
        return bounds.index(max(bounds))

    def means(self) -> list[float]:
        """Amount per second of each arm; 0 where it was never pulled."""
        return [total / weight if weight else 0.0 for total, weight in zip(self._sums, self._weights, strict=True)]

    def regret(self) -> float:
        """The share of the best arm's reward that pulls of others lost, by the means as they are now; 0 before the first pull ended."""
        means = self.means()
        return 1 - sum(means[arm] for arm in self._pulls) / (len(self._pulls) * max(means)) if any(means) else 0.0

"""A block that heat fell into is taken again; a device that stays hot leaves numbers that do not count, never none."""

import pytest

from common.python.measure import stopping as throttle
from common.python.measure.stopping import Throttle
from common.python.results import Block, TelemetrySummary


class Weather:
    """A device that throttles in the blocks that `hot` names, counted from 0 over all that are taken."""

    def __init__(self, hot):
        self.hot, self.taken, self.pauses = hot, 0, []
        self.throttle = Throttle(self, self.pauses.append)

    def summary(self, since=0.0):
        return TelemetrySummary(throttled_share=0.5 if self.hot(self.taken - 1) else 0.0, reasons={"power_cap": 1.0})

    def block(self):
        self.taken += 1
        return Block(seed=self.taken, samples_ns=(1.0,))

    def take(self, count):
        return [self.throttle.take(self.block).seed for _ in range(count)]


def test_without_heat_every_block_counts_and_a_power_cap_is_no_heat():
    weather = Weather(lambda _: False)

    assert weather.take(4) == [1, 2, 3, 4]
    assert (weather.throttle.discarded, weather.throttle.is_unfit, weather.pauses) == (0, False, [])


def test_a_hot_block_is_taken_again_after_a_pause_that_grows():
    weather = Weather(lambda number: number in (1, 2, 3, 4, 5))

    assert weather.take(2) == [1, 7]
    assert weather.pauses == [0.05, 0.1, 0.2, 0.4, 0.5]


@pytest.mark.parametrize(("hot", "unfit"), [((0,), False), ((0, 2), True)])
def test_more_than_a_quarter_of_hot_blocks_is_unfit(hot, unfit):
    weather = Weather(lambda number: number in hot)
    weather.take(4)

    assert weather.throttle.is_unfit is unfit


def test_a_device_that_never_cools_still_gives_samples_and_is_unfit(monkeypatch):
    now = iter(range(0, 10_000, 5))
    monkeypatch.setattr(throttle.time, "monotonic", lambda: float(next(now)))
    weather = Weather(lambda _: True)

    assert len(weather.take(3)) == 3
    assert weather.throttle.is_hopeless
    assert weather.throttle.is_unfit
    assert weather.throttle.discarded == 6  # 5 s each by this clock: 30 s, and then no more

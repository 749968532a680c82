"""How long a new request waits, from the pace of the answers before it."""

import pytest

from common.serving.pace import Pace


def test_a_wait_is_the_requests_ahead_at_the_recent_pace():
    now = [0.0]
    pace = Pace(recent=4, clock=lambda: now[0])
    assert pace.wait_ms(5) == 0.0
    for _ in range(9):
        now[0] += 0.010
        pace.ended()
    now[0] += 0.010
    assert pace.wait_ms(3) == pytest.approx(30.0)

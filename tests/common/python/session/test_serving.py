"""How many wrong contexts a referee may let pass before it is called too weak."""

import random

import pytest

from common.python.session.serving import REFUSED_SHARE, too_few


@pytest.mark.parametrize(("missed", "expected"), {0: False, 1: False, 4: False, 5: True, 12: True, 128: True}.items())
def test_few_of_128_may_pass(missed, expected):
    assert too_few(128 - missed, 128) is expected


def test_none_tried_proves_nothing():
    assert too_few(0, 0)
    assert too_few(0, 2)
    assert not too_few(1, 1)


@pytest.mark.parametrize(("share", "least", "most"), [(REFUSED_SHARE, 0.0, 0.015), (0.999, 0.0, 0.0), (0.9, 0.99, 1.0)])
def test_an_honest_referee_is_seldom_called_weak_and_a_weak_one_nearly_always(share, least, most):
    rng = random.Random(1)
    called = sum(too_few(sum(rng.random() < share for _ in range(128)), 128) for _ in range(2000)) / 2000
    assert least <= called <= most

"""When the GPU had work left behind the clock, and when it only seems so."""

import pytest

from common.python.measure.hidden_work import unfinished


@pytest.mark.parametrize(
    ("behind_us", "held", "is_over"),
    [
        ((1.7, 1.6, 28.4), True, False),
        ((6.0, 1.7, 6.0), True, True),
        ((6.0, 1.7, 6.0, 1.7, 1.7), True, False),  # of which the median of times has nothing
        ((28.4, 28.4), True, False),
        ((51.0, 51.0), True, True),
        ((9.0, 9.0, 9.0), False, False),
        ((51.0, 51.0, 51.0), False, True),
        ((0.0,), True, False),
        ((), True, False),
    ],
)
def test_it_is_the_median_of_looks_that_tells(behind_us, held, is_over):
    assert bool(unfinished([1e3 * us for us in behind_us], 1e6, held=held)) is is_over


def test_the_sentence_says_what_was_found_and_what_was_expected():
    assert unfinished([7e3, 8e3, 9e3], 1e6, held=True) == (
        "found the GPU at work for 8.0 us after the clock had stopped, in the median of 3 samples; "
        "expected all work done by then, and at most 5 us"
    )


@pytest.mark.parametrize(
    ("behind_us", "call_us", "is_over"), [(5.6, 1_800, True), (5.6, 8_900, False), (8.3, 2_700, True), (8.3, 3_500, False)]
)
def test_a_long_call_may_end_in_a_copy_to_the_host_that_takes_a_while_to_be_seen(behind_us, call_us, is_over):
    assert bool(unfinished([1e3 * behind_us] * 16, 1e3 * call_us, held=True)) is is_over


@pytest.mark.parametrize(("behind_us", "gpus", "is_over"), [(6.7, 1, True), (6.7, 2, False), (11.0, 2, True)])
def test_what_another_gpu_finished_takes_longer_to_be_seen(behind_us, gpus, is_over):
    assert bool(unfinished([1e3 * behind_us] * 26, 1e6, held=True, gpus=gpus)) is is_over

"""The page of predictions: what counts as a miss, what it says of each, and where its dots lie."""

import re
from pathlib import Path

import pytest

from tests.support.factories import an_interval
from tools.checks.predicted_ratios import Headline
from tools.checks.prediction_page import PAGE, Dot, prediction_page, prediction_picture

ROOT = Path("/root-of-the-tree")


def a_dot(predicted, measured, *, target="ch01:pair", model="h100", is_guess=False, half_width=0.01):
    headline = Headline(model, "default", predicted, measured, an_interval(measured, half_width), is_guess)
    return Dot(target, ROOT / "ch01" / "README.md", target.partition(":")[2], headline)


def circles(svg):
    found = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="4" fill="([^"]+)" fill-opacity[^>]*><title>([^<]*)', svg)
    return {told.partition(" ")[0]: (float(x), float(y), fill) for x, y, fill, told in found}


def test_misses_are_listed_the_furthest_first_and_hits_are_counted():
    hit, over, under = a_dot(2, 2.4, target="ch01:hit"), a_dot(2, 3, target="ch01:over"), a_dot(4, 1, target="ch01:under")
    page = prediction_page([hit, over, under], ROOT)

    assert re.search(r"\| equations \| 3 \| 1, 33 % \| 1\.50x \| 4\.00x \|", page)
    table = page.partition("## Misses")[2]
    assert "ch01:hit" not in table
    assert table.index("ch01:under") < table.index("ch01:over")
    assert "[ch01:over](../../ch01/README.md#over)" in table


def test_guesses_are_counted_apart():
    page = prediction_page([a_dot(2, 2), a_dot(2, 8, is_guess=True)], ROOT)

    assert re.search(r"\| equations \| 1 \| 1, 100 %", page)
    assert re.search(r"\| guesses \| 1 \| 0, 0 %", page)
    assert "guess 2x" in page


@pytest.mark.parametrize(("measured", "is_above"), [(6.0, True), (1.0, False)])
def test_a_pair_that_gained_more_than_predicted_lies_above_one_that_did_as_predicted(measured, is_above):
    found = circles(prediction_picture([a_dot(3, 3, target="right"), a_dot(3, measured, target="other")]))

    assert found["right"][0] == found["other"][0]
    assert (found["other"][1] < found["right"][1]) is is_above  # y grows downwards


def test_cards_have_colours_and_a_guess_is_hollow():
    svg = prediction_picture([a_dot(2, 2, target="a"), a_dot(2, 2, target="b", model="h200"), a_dot(2, 3, target="c", is_guess=True)])
    found = circles(svg)

    assert found["a"][2] != found["b"][2]
    assert found["c"][2] == "white"
    assert ">H100</text>" in svg
    assert ">H200</text>" in svg


def test_a_ratio_of_thousands_is_put_at_the_edge_and_the_others_keep_their_room():
    near, far = a_dot(1, 1, target="near"), a_dot(20_000, 9_000, target="far")
    with_far, without = circles(prediction_picture([near, far])), circles(prediction_picture([near, a_dot(300, 300, target="far")]))

    assert with_far["near"] == without["near"]
    assert with_far["far"][0] > with_far["near"][0]


def test_the_page_shows_its_picture():
    assert f"]({PAGE.with_suffix('.svg').name})" in prediction_page([a_dot(1, 1)], ROOT)


def test_a_gain_that_was_predicted_and_turned_out_a_loss_is_named_though_it_is_no_miss():
    lost, won = a_dot(1.1, 0.97, target="ch01:lost"), a_dot(0.95, 1.05, target="ch01:won")
    unsure, gained = a_dot(1.1, 0.99, target="ch01:unsure", half_width=0.05), a_dot(1.1, 1.02, target="ch01:gained")
    page = prediction_page([lost, won, unsure, gained], ROOT)

    misses, _, opposite = page.partition("## Misses")[2].partition("## Gains predicted, losses measured")
    assert "ch01:" not in misses
    assert re.findall(r"\[(ch01:\w+)\]", opposite) == ["ch01:lost", "ch01:won"]


def test_where_every_gain_is_one_nothing_is_said_of_losses():
    assert "losses" not in prediction_page([a_dot(2, 2)], ROOT)

"""Coordinates in a grid of ranks, as torch's DeviceMesh gives them."""

import pytest

from common.python.errors import BenchmarkError
from common.python.pairs.layout import layout, place_of


def test_the_last_dimension_varies_fastest():
    found = [layout(rank, 6, dp=3, tp=2) for rank in range(6)]

    assert [each.get_coordinate() for each in found] == [(0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1)]
    assert [each.get_local_rank("tp") for each in found] == [0, 1, 0, 1, 0, 1]
    assert [each.get_local_rank(0) for each in found] == [0, 0, 1, 1, 2, 2]
    assert (found[0].mesh_dim_names, found[0].shape, found[0].size(), found[0].size("dp")) == (("dp", "tp"), (3, 2), 6, 3)


def test_a_rank_knows_its_place_and_makes_grids():
    place = place_of(3, 4)

    assert (place["rank"], place["ranks"]) == (3, 4)
    assert place["mesh"](dp=2, tp=2).get_coordinate() == (1, 1)


def test_a_grid_that_has_not_a_place_for_each_rank_is_one_sentence():
    with pytest.raises(BenchmarkError, match=r"mesh\(dp=2, tp=4\): found 8 places; expected 4, one a rank"):
        layout(0, 4, dp=2, tp=4)
    with pytest.raises(BenchmarkError, match=r"asked for dimension 'pp'; expected one of dp, tp"):
        layout(0, 4, dp=2, tp=2).size("pp")

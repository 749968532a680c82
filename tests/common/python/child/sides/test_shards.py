"""Inputs of peers: made when they are asked for, two alive at most, with values of their own rank."""

import pytest
import torch

from common import Spec, Workload
from common.python.child.sides.inputs import Inputs
from common.python.child.sides.shards import Shards
from common.python.errors import BenchmarkError

CPU = torch.device("cpu")
WORKLOAD = Workload(
    inputs=lambda rand, rank, n: {"x": rand.of_rank(rank).normal(n), "w": rand.normal(n), "file": rand.of_rank(rank).file(n)},
    outputs=lambda n, shards, ranks: {"y": Spec((sum(len(shards(rank)["x"]) for rank in range(ranks)),), torch.float32)},
    reference=lambda x: x,
    constants=("w",),
    ranks=(4,),
    time_at={"n": 8},
    check_at=({"n": 8},),
    work=lambda n: {},
    rtol=0.0,
    atol=0.0,
)


@pytest.fixture
def ranks(tmp_path):
    """The inputs of each of four ranks, as their own processes make them, and as a call with seed 5 finds them."""
    made = []
    for rank in range(4):
        (folder := tmp_path / f"process_{rank}").mkdir()
        made.append(Inputs(WORKLOAD, {"n": 8}, 1, CPU, folder, (rank, 4)))
        made[-1].rewrite(5)
    return made


def test_shards_are_what_the_peers_have(ranks):
    shards = ranks[1].shards(5)

    for rank, inputs in enumerate(ranks):
        found = shards(rank)
        assert torch.equal(found["x"], inputs.values["x"])
        assert torch.equal(found["w"], inputs.values["w"])
        assert found["file"].read_bytes() == inputs.values["file"].read_bytes()


def test_a_ranks_own_draws_differ_and_others_are_the_same_for_all(ranks):
    assert len({tuple(inputs.values["x"].tolist()) for inputs in ranks}) == 4
    assert len({inputs.values["file"].read_bytes() for inputs in ranks}) == 4
    assert len({tuple(inputs.values["w"].tolist()) for inputs in ranks}) == 1


def test_outputs_may_be_sized_by_what_peers_have(ranks):
    assert ranks[0].outputs()["y"].shape == (32,)


def test_of_peers_two_are_alive_and_what_is_old_is_emptied():
    made = []

    def make(rank):
        made.append(rank)
        return {"x": rank}

    shards = Shards(0, 4, {"x": 0}, make)
    first = shards(1)
    assert [shards(rank)["x"] for rank in (0, 2, 1, 0)] == [0, 2, 1, 0]
    assert made == [1, 2]
    assert shards(3) == {"x": 3}
    assert first == {}
    assert shards(1) == {"x": 1}
    assert made == [1, 2, 3, 1]
    with pytest.raises(BenchmarkError, match=r"shards\(4\): found no such rank; expected one from 0 to 3"):
        shards(4)

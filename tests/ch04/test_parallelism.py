"""Which layout a model gets, by its parameters and the GPUs at hand, and what meshes the training scripts refuse."""

import pytest

from common.python.child.sides.loader import import_file
from common.python.project import PROJECT_ROOT

CHAPTER = PROJECT_ROOT / "ch04"
parallelism = import_file(CHAPTER / "shared_parallelism.py")
nodes = import_file(CHAPTER / "multi_node_blackwell.py")


@pytest.mark.parametrize(
    ("parameters", "gpus", "tp", "dp", "memory_gb"),
    [
        (124e6, 8, 1, 8, (1.0, 2.0)),
        (1e9, 8, 2, 4, (4.0, 10.0)),
        (8e9, 8, 2, 4, (4.0, 10.0)),
        (10e9, 8, 4, 2, (10.0, 25.0)),
        (30e9, 8, 8, 1, (25.0, 50.0)),
        (70e9, 8, 8, 1, (25.0, 50.0)),
        (405e9, 64, 8, 8, (50.0, None)),
        (70e9, 2, 2, 1, (25.0, 50.0)),  # no more ranks than there are
        (13e9, 6, 2, 3, (10.0, 25.0)),
    ],
)
def test_recommended(parameters, gpus, tp, dp, memory_gb):
    assert parallelism.recommended(parameters, gpus) == parallelism.Layout(tp, dp, memory_gb)


@pytest.mark.parametrize(("parameters", "gpus"), [(0, 8), (1e9, 0)])
def test_nothing_is_refused(parameters, gpus):
    with pytest.raises(ValueError, match="expected at least 1 of each"):
        parallelism.recommended(parameters, gpus)


@pytest.mark.parametrize("tp", [0, -1, 3, 8, 16])
def test_a_tp_that_does_not_fit_is_refused(tp):
    with pytest.raises(ValueError, match=f"--tp-size: found {tp}; expected a divisor of the 8 ranks and of the model's 12 heads"):
        parallelism.require_tp(tp, heads=12, ranks=8)


@pytest.mark.parametrize(
    ("ranks", "local", "virtual", "tp", "mesh"),
    [(16, 8, 0, 2, (2, 4, 2)), (4, 4, 2, 2, (2, 1, 2)), (2, 2, 2, 1, (2, 1, 1)), (8, 8, 0, 1, (1, 8, 1))],
)
def test_a_node_is_an_axis(ranks, local, virtual, tp, mesh):
    assert nodes.mesh_of(ranks, local, virtual, tp) == dict(zip(("node", "dp", "tp"), mesh, strict=True))


def test_nodes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="found 4 ranks; expected a multiple of 3 nodes times a --tp-size of 1"):
        nodes.mesh_of(4, 4, 3, 1)

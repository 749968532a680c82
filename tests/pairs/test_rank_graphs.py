"""NCCL ends only when no graph holds its collectives: whichever side captures some must destroy its graph when it is closed."""

import pytest
import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils._python_dispatch import TorchDispatchMode

from common import graph
from common.python.child.sides.inputs import Inputs
from common.python.child.sides.loader import load_side, load_workload
from common.python.project import PROJECT_ROOT
from tests.support.chapters import modules_of

# How many ranks each pair needs, and which of its sides capture collectives.
PAIRS = {
    "ch04:symmetric_memory": (2, ("graph",)),
    "ch13:tp_fsdp": (2, ("baseline", "optimized")),
    "ch16:inference_serving": (1, ("optimized",)),
    "ch16:symmetric_memory_inference": (1, ()),
    "ch17:pipeline_parallel_inference": (1, ()),
}


class Collectives(TorchDispatchMode):
    """Notes what is asked of torch.distributed, by whatever name of Python."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        if "c10d" in operator.namespace:
            self.seen.append(operator)
        return operator(*args, **(kwargs or {}))


class Watched:
    """Makes its call once, as a capture does, and notes whether collectives were in it and whether it was closed."""

    made: list["Watched"] = []

    def __init__(self, call):
        self.call, self.closed = call, False
        with Collectives() as collectives:
            call()
        self.collectives = collectives.seen
        self.made.append(self)

    def __call__(self):
        return self.call()

    def close(self):
        self.closed = True


@pytest.fixture
def alone(request, monkeypatch):
    """A group of as many ranks as the pair needs, of which only the first is there, and no graph made yet."""
    monkeypatch.setattr(graph, "captured", Watched)
    monkeypatch.setattr(Watched, "made", [])
    ranks, _ = PAIRS[request.getfixturevalue("pair")]
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=ranks)
    yield ranks
    dist.destroy_process_group()


def mesh(**dims):
    return init_device_mesh("cpu", tuple(dims.values()), mesh_dim_names=tuple(dims))


@pytest.mark.filterwarnings("ignore:.*_autograd:FutureWarning")  # the names of the oldest torch that is supported
@pytest.mark.parametrize(
    ("pair", "side"),
    [(pair, side) for pair, (_, capturing) in PAIRS.items() for side in (capturing if "graph" in capturing else ("baseline", "optimized"))],
)
def test_a_graph_with_collectives_is_destroyed_with_its_side(pair, side, alone, monkeypatch, tmp_path):
    chapter, name = pair.split(":")
    file = f"optimized_{name}_graph.py" if side == "graph" else f"{side}_{name}.py"  # a step of the ladder
    folder = PROJECT_ROOT / chapter
    with modules_of(folder, monkeypatch):
        workload = load_workload(folder / f"workload_{name}.py")
        shape = workload.check_at[0]
        inputs = Inputs(workload, shape, 0, torch.device("cpu"), tmp_path, (0, alone))
        loaded = load_side(folder / file, workload, None)
        loaded.prepare(inputs.values, {**shape, "rank": 0, "ranks": alone, "mesh": mesh})
        assert Watched.made
        loaded.close()
    with_collectives = [made for made in Watched.made if made.collectives]
    assert bool(with_collectives) == (side in PAIRS[pair][1])
    assert all(made.closed for made in with_collectives)

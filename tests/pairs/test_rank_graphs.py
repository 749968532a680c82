"""NCCL ends only when no graph holds its collectives: whichever side captures some must destroy its graph when it is closed."""

import pytest
import torch
import torch.distributed as dist

from common import rank_graph
from common.python.child.sides.inputs import Inputs
from common.python.child.sides.loader import load_side, load_workload
from common.python.project import PROJECT_ROOT
from tests.support.chapters import modules_of

PAIRS = ("ch16:inference_serving", "ch16:symmetric_memory_inference", "ch17:pipeline_parallel_inference")
COLLECTIVES = ("all_reduce", "all_gather_into_tensor", "all_to_all_single", "broadcast", "gather", "scatter", "send", "recv")


class Watched(rank_graph.RankGraph):
    """Makes its call once, as a capture does, and notes whether collectives were in it and whether it was closed."""

    made: list["Watched"] = []

    def __init__(self, call, device):
        super().__init__(call, device)
        self.closed, self.collectives = False, []
        with pytest.MonkeyPatch.context() as patch:
            for name in COLLECTIVES:
                patch.setattr(dist, name, lambda *_, name=name, **__: self.collectives.append(name))
            call()
        self.made.append(self)

    def close(self):
        self.closed = True
        super().close()


@pytest.fixture
def alone(tmp_path, monkeypatch):
    """A group of one rank, and no graph made yet."""
    monkeypatch.setattr(rank_graph, "RankGraph", Watched)
    monkeypatch.setattr(Watched, "made", [])
    dist.init_process_group("gloo", init_method=f"file://{tmp_path}/meeting", rank=0, world_size=1)
    yield
    dist.destroy_process_group()


@pytest.mark.parametrize("side", ["baseline", "optimized"])
@pytest.mark.parametrize("pair", PAIRS)
def test_a_graph_with_collectives_is_destroyed_with_its_side(pair, side, alone, monkeypatch, tmp_path):
    chapter, name = pair.split(":")
    folder = PROJECT_ROOT / chapter
    with modules_of(folder, monkeypatch):
        workload = load_workload(folder / f"workload_{name}.py")
        shape = workload.check_at[0]
        inputs = Inputs(workload, shape, 0, torch.device("cpu"), tmp_path, (0, 1))
        loaded = load_side(folder / f"{side}_{name}.py", workload, None)
        loaded.prepare(inputs.values, {**shape, "rank": 0, "ranks": 1})
        assert Watched.made
        loaded.close()
    with_collectives = [graph for graph in Watched.made if graph.collectives]
    assert bool(with_collectives) == ((pair, side) == ("ch16:inference_serving", "optimized"))
    assert all(graph.closed for graph in with_collectives)

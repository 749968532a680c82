"""The split of labs/ultimate_moe_inference:ultimate_inference_ranks: what ranks have makes up one layer, and their sums its answer."""

import pytest
import torch
import torch.distributed as dist
from torch.testing._internal.distributed.fake_pg import FakeStore

from common import graph
from common.block_formats import mxfp4_restored
from common.python.child.sides.compare import upcast
from common.python.child.sides.inputs import Inputs
from common.python.child.sides.loader import load_side, load_workload
from common.python.project import PROJECT_ROOT
from tests.support.chapters import modules_of

LAB = PROJECT_ROOT / "labs/ultimate_moe_inference"
SHAPE = {"layers": 2, "hidden": 96, "heads": 16, "experts": 5, "sequences": 2, "context": 3}  # 3 blocks of units for 2 ranks


@pytest.fixture
def workload(monkeypatch):
    with modules_of(LAB, monkeypatch):
        yield load_workload(LAB / "workload_ultimate_inference_ranks.py")


def shard(workload, folder, rank, ranks=2):
    return Inputs(workload, SHAPE, 0, torch.device("cpu"), folder, (rank, ranks)).values


def by_halves(one, other):
    """Gates of both, then what they open; experts come first."""
    return torch.cat([part for pair in zip(one.chunk(2, 1), other.chunk(2, 1), strict=True) for part in pair], 1)


def merged(one, other):
    """The inputs of a rank that is alone, out of those of two."""
    columns = {"o": lambda a, b: torch.cat((a, b), 1), "o_bias": torch.add}
    alike = ("attention_norm", "feed_forward_norm", "router", "router_bias")
    pairs = zip(one["weights"], other["weights"], one["packed"], other["packed"], strict=True)
    weights, packed = [], []
    for mine, theirs, experts, others in pairs:
        join = {name: columns.get(name, lambda a, b: torch.cat((a, b))) for name in mine}
        weights.append({name: mine[name] if name in alike else join[name](mine[name], theirs[name]) for name in mine})
        down = [torch.cat(both, 2) for both in zip(experts["down"][:2], others["down"][:2], strict=True)]
        packed.append(
            {
                "gate_up": [by_halves(*both) for both in zip(experts["gate_up"], others["gate_up"], strict=True)],
                "down": [*down, experts["down"][2] + others["down"][2]],
            }
        )
    caches = {name: torch.cat((one[name], other[name]), 2) for name in ("keys", "values")}
    return {"x": one["x"], "chosen": one["chosen"], "weights": weights, "packed": packed, **caches}


def test_two_ranks_have_the_parts_of_one_layer(workload, tmp_path):
    shards = [upcast(shard(workload, tmp_path, rank), torch.float64) for rank in range(2)]
    sizes = {key: SHAPE[key] for key in ("layers", "hidden", "heads", "experts")}
    of_two = workload.reference(shards.__getitem__, 1, 2, **sizes)
    alone = workload.reference(lambda _rank: merged(*shards), 0, 1, **sizes)
    torch.testing.assert_close(of_two, alone, rtol=1e-9, atol=1e-9)
    assert not torch.equal(shards[0]["keys"], shards[1]["keys"])


@pytest.mark.parametrize("ranks", [2, 4, 8])
def test_the_timed_layer_is_split_among_all_ranks(workload, ranks):
    from shared_gpt_oss import config_of
    from shared_tensor_parallel import share_of

    shares = [share_of(config_of(2, 2880, 64, 128), rank, ranks) for rank in range(ranks)]
    assert [sum(getattr(share, name) for share in shares) for name in ("heads", "kv_heads", "intermediate")] == [64, 8, 2880]
    assert all(share.intermediate % 32 == 0 for share in shares)
    assert max(share.intermediate for share in shares) - min(share.intermediate for share in shares) in (0, 32)


class Watched:
    """Makes its call, as a capture does, and notes whether it was closed."""

    made = None

    def __init__(self, call):
        self.answer, self.closed, Watched.made = call(), False, self

    def __call__(self):
        return self.answer

    def close(self):
        self.closed = True


def test_the_graph_has_two_sums_a_layer_and_is_destroyed_with_its_side(workload, tmp_path, monkeypatch):
    import shared_packed_experts
    import shared_tensor_parallel

    def product(blocks, scales, biases, x, chosen):
        weights = mxfp4_restored(blocks, scales, x.dtype)[chosen.flatten()]
        rows = x.repeat_interleave(chosen.numel() // len(x), 0)
        return torch.einsum("snk,sk->sn", weights, rows) + biases[chosen.flatten()]

    sums = []
    monkeypatch.setattr(shared_packed_experts, "_product", product)
    monkeypatch.setattr(torch, "compile", lambda half, **_options: half)
    monkeypatch.setattr(graph, "captured", Watched)
    monkeypatch.setattr(shared_tensor_parallel.dist, "all_reduce", lambda part: sums.append(part.shape))
    dist.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    try:
        loaded = load_side(LAB / "optimized_ultimate_inference_ranks.py", workload, None)
        loaded.prepare(shard(workload, tmp_path, 0), {**SHAPE, "rank": 0, "ranks": 2})
        loaded.close()
    finally:
        dist.destroy_process_group()
    assert sums == 2 * SHAPE["layers"] * [(SHAPE["sequences"], SHAPE["hidden"])]
    assert Watched.made.closed

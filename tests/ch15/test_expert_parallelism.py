"""ch15:expert_parallelism: no token is dropped silently, and every expert takes the first tokens that chose it."""

import re

import pytest
import torch

from common.python.child.sides.loader import import_file, load_side, load_workload
from common.python.project import PROJECT_ROOT

CHAPTER = PROJECT_ROOT / "ch15"
capacity = import_file(CHAPTER / "shared_capacity.py")
WORKLOAD = load_workload(CHAPTER / "workload_expert_parallelism.py")


@pytest.mark.parametrize(
    ("tokens", "experts", "top", "factor", "taken"),
    [(100, 8, 2, 1.25, 32), (100, 8, 1, 1.0, 13), (100, 8, 2, 4.0, 100), (100, 8, 2, 9.0, 100), (1, 64, 1, 0.5, 1)],
)
def test_capacity_counts_all_choices_and_rounds_up(tokens, experts, top, factor, taken):
    assert capacity.capacity_of(tokens, experts, top, factor) == taken


def test_capacity_factor_of_nothing():
    with pytest.raises(ValueError, match=re.escape("capacity_factor=0; expected more than 0 (4 leaves room for every token)")):
        capacity.capacity_of(100, 8, 2, 0)


def test_queues():
    place, lengths = capacity.queue(torch.tensor([[2, 0], [2, 1], [0, 2]]), 4)
    assert place.tolist() == [[0, 0], [1, 0], [1, 2]]
    assert lengths.tolist() == [2, 1, 3, 0]
    kept, dropped = capacity.taken(lengths, 2)
    assert kept.tolist() == [2, 1, 2, 0]
    assert dropped.tolist() == [0, 0, 1, 0]


@pytest.mark.parametrize("side", ["baseline", "optimized", "library"])
@pytest.mark.parametrize("factor", [0.25, 1.0, 4.0])
def test_every_choice_is_kept_or_counted(side, factor):
    """Where all tokens choose the same two experts, these answer the first tokens alone, and say how many they turned away."""
    tokens, experts, top = 40, 8, 2
    shape = {"tokens": tokens, "experts": experts, "top": top, "hidden": 16, "ffn": 16, "capacity_factor": factor, "skew": 0.0}
    generator = torch.Generator().manual_seed(1)
    values = {
        "x": torch.randn(tokens, 16, generator=generator).bfloat16(),
        "chosen": torch.tensor([[5, 2]]).expand(tokens, top).contiguous(),
        "gates": torch.full((tokens, top), 0.5, dtype=torch.bfloat16),
        "up": torch.randn(experts, 32, 16, generator=generator).bfloat16(),
        "down": torch.randn(experts, 16, 16, generator=generator).bfloat16(),
    }
    step = load_side(CHAPTER / f"{side}_expert_parallelism.py", WORKLOAD, None).prepare(values, shape)
    y, kept, dropped = step()
    room = capacity.capacity_of(tokens, experts, top, factor)
    assert (kept + dropped).tolist() == [0, 0, tokens, 0, 0, tokens, 0, 0]
    assert kept.sum() == top * room
    assert bool((y[:room].abs().amax(dim=1) > 0).all())
    assert not y[room:].any()

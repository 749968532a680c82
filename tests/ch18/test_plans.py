"""Chapter 18: where the batches of a trace of sizes lie, into how many parts a context is split, and when they are merged."""

import pytest
import torch

from common.python.child.sides.loader import import_file
from common.python.project import PROJECT_ROOT

batches = import_file(PROJECT_ROOT / "ch18/shared_batch_sizes.py")
context = import_file(PROJECT_ROOT / "ch18/shared_context_parts.py")
paged = import_file(PROJECT_ROOT / "ch18/shared_paged_decode.py")


@pytest.mark.parametrize(("steps", "slots", "capacity"), [(1, 1, 8), (8, 32, 256), (4, 6, 24)])
def test_no_request_has_the_position_of_padding(steps, slots, capacity):
    assert all(1 <= size <= slots for size in batches.sizes_of(steps, slots))
    assert all(0 <= at < capacity - 1 for row in batches.positions_of(steps, slots, capacity) for at in row)


@pytest.mark.parametrize("sms", [1, 78, 132, 148])
@pytest.mark.parametrize("programs", [1, 8, 32, 128, 512, 5000])
def test_parts_of_a_context_fill_the_gpu_and_no_more(programs, sms):
    tokens = 65536
    span = paged.span_of(tokens, programs, sms)
    parts = -(-tokens // span)
    assert span % paged.TILE == 0
    assert parts == 1 or parts * programs <= paged.PER_SM * sms  # all at once: no program waits for another's end
    finer = -(-tokens // max(span - paged.TILE, paged.TILE))
    assert span == paged.TILE or finer * programs > paged.PER_SM * sms  # a tile less a part would be too many


@pytest.mark.parametrize(
    "lengths", [[1], [65536], [32768] * 4, [2048, 20000, 40000, 65536], [17, 4097], [1, 1, 1], [8192] * 64, [*range(1024, 66560, 1024)]]
)
def test_parts_hold_each_context_once_and_none_is_longer_than_it_must_be(lengths):
    count = context.count_of(len(lengths), kv_heads=8, sms=132)
    plan, starts = context.plan_of(torch.tensor(lengths, dtype=torch.int32), max(lengths) + 7, count, context.TILE)
    seen = [0] * len(lengths)
    for part, (sequence, begin, end) in enumerate(plan.tolist()):
        if end > begin:
            assert seen[sequence] == begin  # in order: none is left out, none is read twice
            assert starts[sequence] <= part < starts[sequence + 1]
            seen[sequence] = end
    assert seen == lengths
    some = [end > begin for _, begin, end in plan.tolist()]
    assert some == sorted(some, reverse=True)  # parts without a token come last: programs before them share the SMs evenly
    longest = max(end - begin for _, begin, end in plan.tolist())
    shorter = -(-longest // context.TILE) * context.TILE - context.TILE
    assert shorter == 0 or sum(-(-length // shorter) for length in lengths) > count  # a tile less a part would be too many


class Launches:
    """In place of a module's kernels, by name: what options each is launched with."""

    def __init__(self, monkeypatch, module, *names, capability):
        self.options = {}
        for name in names:
            monkeypatch.setattr(module, name, self.kernel(name))
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _device: capability)
        monkeypatch.setattr(torch.Tensor, "is_cuda", property(lambda _tensor: True))

    def kernel(self, name):
        launches = self.options

        class Kernel:
            def __getitem__(self, _grid):
                return lambda *_arguments, **options: launches.update({name: options})

        return Kernel()


def a_context():
    pages = torch.empty(4, 16, 1, 64)
    return torch.empty(1, 4, 64), pages, pages, torch.zeros(1, 4, dtype=torch.int32), torch.ones(1, dtype=torch.int32)


@pytest.mark.parametrize(("span", "capability", "early"), [(16, (9, 0), True), (16, (8, 9), False), (64, (9, 0), False)])
def test_parts_are_merged_early_where_a_gpu_can(span, capability, early, monkeypatch):
    """The kernel that lets the merge start and the launch that may do so belong together: neither has a meaning before Hopper."""
    launched = Launches(monkeypatch, paged, "attend", "merge", capability=capability).options
    paged.decoder(*a_context(), span)()
    assert launched["attend"]["EARLY"] == early
    merged = launched.get("merge", {"EARLY": False, "launch_pdl": False})
    assert (merged["EARLY"], merged["launch_pdl"]) == (early, early)
    assert ("merge" in launched) == (span < 64)


@pytest.mark.parametrize(("capability", "early"), [((9, 0), True), ((8, 9), False)])
def test_parts_of_contexts_are_merged_early_where_a_gpu_can(capability, early, monkeypatch):
    launched = Launches(monkeypatch, context, "attend_part", "merge_parts", capability=capability).options
    monkeypatch.setattr(context, "sm_count", lambda: 132)
    context.decoder(*a_context())()
    assert launched["attend_part"]["EARLY"] == early
    assert (launched["merge_parts"]["EARLY"], launched["merge_parts"]["launch_pdl"]) == (early, early)

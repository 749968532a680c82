"""ch13:custom_allocator: what its predictions say an allocator reserves, by simulations of one that joins free neighbours and one not."""

import subprocess
import sys

from common.python.child.sides.loader import import_file, load_workload
from tests.support.teeth import ROOT

CHUNKS = load_workload(ROOT / "ch13/workload_custom_allocator.py").time_at["chunks"]
CALLS = 3


class Joined:
    """Best fit in one range of addresses that grows at its end, as expandable segments are; sizes in chunks."""

    def __init__(self):
        self.blocks, self.reserved = set(), 0

    def take(self, size):
        """A block, as its begin and end."""
        edges = [0, *(edge for block in sorted(self.blocks) for edge in block), self.reserved]
        holes = [hole for hole in zip(edges[::2], edges[1::2], strict=True) if hole[1] - hole[0] >= size]
        begin = min(holes, key=lambda hole: hole[1] - hole[0])[0] if holes else edges[-2]
        self.blocks.add((begin, begin + size))
        self.reserved = max(self.reserved, begin + size)
        return begin, begin + size

    def free(self, block):
        self.blocks.remove(block)


class Separate:
    """Each block from a call of its own to the driver, kept when freed, and given to the next request of its size."""

    def __init__(self):
        self.kept, self.reserved = [], 0

    def take(self, size):
        if size in self.kept:
            self.kept.remove(size)
        else:
            self.reserved += size
        return size

    def free(self, size):
        self.kept.append(size)


def reserved_by(allocator):
    """In chunks, after a few steps: the new chunk, then the cache with it, then the last cache goes."""
    for _ in range(CALLS):
        cache = None
        for size in range(1, CHUNKS + 1):
            chunk, grown = allocator.take(1), allocator.take(size)
            for block in (chunk, cache):
                if block is not None:
                    allocator.free(block)
            cache = grown
        allocator.free(cache)
    return allocator.reserved


def test_blocks_that_are_not_joined_add_up_to_one_of_each_size_and_a_chunk():
    assert reserved_by(Separate()) == CHUNKS * (CHUNKS + 1) / 2 + 1


def test_joined_blocks_are_three_times_the_last_cache():
    assert abs(reserved_by(Joined()) / CHUNKS - 2.97) < 0.01


def test_the_demo_tells_what_is_not_as_it_should_be():
    demo = import_file(ROOT / "ch13/custom_allocator.py")
    right = {setting: {"answer": 1.0, "reserved": 9, "in_use": 5} for setting in demo.SETTINGS}
    right["expandable_segments:True"] = {"answer": 1.0, "reserved": 6, "in_use": 5}
    assert list(demo.faults(right)) == []
    (told,) = demo.faults(right | {"": {"answer": 1.0, "reserved": 5, "in_use": 5}})
    assert told.endswith("expected fewer with expandable segments than without")
    (told,) = demo.faults(right | {"": {"answer": 2.0, "reserved": 9, "in_use": 5}})
    assert told.endswith("expected the same under every setting")


def test_without_a_gpu_the_demo_says_so():
    command = [sys.executable, str(ROOT / "ch13/custom_allocator.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env={"PYTHONPATH": str(ROOT), "CUDA_VISIBLE_DEVICES": ""})
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr == "ch13/custom_allocator.py: found no CUDA device; expected one, whose allocator is looked at\n"

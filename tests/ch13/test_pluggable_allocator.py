"""The pool of ch13/pluggable_allocator.cu on pages of the host: blocks keep what is written, and growing leaves no holes; it builds."""

import ctypes
import random
import shutil
import subprocess
import sys

import pytest

from common.python.build.nvcc import build
from common.python.child.sides.loader import import_file, load_workload
from common.python.project import PROJECT_ROOT
from common.python.session.session import BUILD_CACHE

CHAPTER = PROJECT_ROOT / "ch13"
PAGE = 4096
CHUNKS = load_workload(CHAPTER / "workload_custom_allocator.py").time_at["chunks"]


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    made = tmp_path_factory.mktemp("pool") / "pool.so"
    flags = ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", f"-I{CHAPTER}"]
    subprocess.run(["g++", *flags, str(PROJECT_ROOT / "tests/ch13/host_pages.cpp"), "-o", str(made)], check=True, timeout=100)
    loaded = ctypes.CDLL(str(made))
    loaded.pool_new.restype = loaded.pool_take.restype = ctypes.c_void_p
    for name in ("pool_pages", "pool_mapped", "pool_waits"):
        getattr(loaded, name).restype = ctypes.c_size_t
    return loaded


class Pool:
    """A pool of at most `most` pages."""

    def __init__(self, library, most=10_000):
        self.library, self.pool = library, ctypes.c_void_p(library.pool_new(ctypes.c_size_t(most)))

    def take(self, size, stream=1):
        """The address of a block, or None if there is no memory left."""
        return self.library.pool_take(self.pool, ctypes.c_size_t(size), ctypes.c_void_p(stream))

    def give(self, address):
        self.library.pool_give(self.pool, ctypes.c_void_p(address))

    @property
    def pages(self):
        return self.library.pool_pages(self.pool)


def test_a_growing_cache_takes_the_pages_of_what_is_alive_and_no_more(library):
    """The new chunk, then the cache with it, then the last cache goes: at most two caches and a chunk."""
    pool, each = Pool(library), 4
    for _ in range(3):
        cache = None
        for size in range(1, CHUNKS + 1):
            chunk, grown = pool.take(each * PAGE), pool.take(size * each * PAGE)
            for block in filter(None, (chunk, cache)):
                pool.give(block)
            cache = grown
        pool.give(cache)
    assert pool.pages == each * 2 * CHUNKS


def test_blocks_keep_what_is_written_and_pages_are_mapped_once(library):
    """Random requests of two streams, each block full of its own number; mapped are never more pages than there are."""
    pool, draw, alive = Pool(library), random.Random(0), {}
    for number in range(3000):
        if alive and draw.random() < 0.5:
            address, (size, value) = alive.popitem() if draw.random() < 0.5 else draw.choice(list(alive.items()))
            alive.pop(address, None)
            assert ctypes.string_at(address, size) == bytes([value]) * size
            pool.give(address)
        size, value = draw.choice([1, 700, 2048, 2049, PAGE, 3 * PAGE + 5, draw.randrange(1, 40 * PAGE)]), number % 251
        address = pool.take(size, stream=draw.choice([1, 2]))
        assert address not in alive
        ctypes.memset(address, value, size)
        alive[address] = (size, value)
        while len(alive) > 20:
            pool.give(next(iter(alive)))
            alive.pop(next(iter(alive)))
    for address, (size, value) in alive.items():
        assert ctypes.string_at(address, size) == bytes([value]) * size
    assert library.pool_mapped() <= pool.pages


def test_a_block_goes_to_its_own_stream_at_once_and_to_another_after_a_wait(library):
    pool = Pool(library, most=3)
    first = pool.take(3 * PAGE, stream=1)
    pool.give(first)
    assert pool.take(3 * PAGE, stream=1) == first
    assert (library.pool_waits(), pool.pages) == (0, 3)
    pool.give(first)
    assert pool.take(3 * PAGE, stream=2)
    assert (library.pool_waits(), pool.pages) == (1, 3)


def test_parts_of_a_page_are_of_one_size_and_one_stream(library):
    pool = Pool(library)
    parts = [pool.take(600, stream=1) for _ in range(4)]
    assert {part // PAGE for part in parts} == {parts[0] // PAGE}
    assert pool.pages == 1
    assert pool.take(600, stream=2) // PAGE != parts[0] // PAGE
    pool.give(parts[2])
    assert pool.take(1024, stream=1) == parts[2]
    assert pool.pages == 2


def test_memory_that_ran_out_is_there_again_when_blocks_are_given_back(library):
    pool = Pool(library, most=4)
    block = pool.take(3 * PAGE)
    assert pool.take(2 * PAGE) is None
    pool.give(block)
    assert pool.take(4 * PAGE)
    assert pool.pages == 4


def test_the_allocator_builds():
    if shutil.which("nvcc") is None:
        pytest.skip("no nvcc")
    demo = import_file(CHAPTER / "pluggable_allocator.py")
    built = build(demo.SOURCE, demo.ARCHITECTURES, cache=BUILD_CACHE, root=PROJECT_ROOT)
    exported = subprocess.run(["nm", "-D", "--defined-only", built.library], capture_output=True, text=True, check=True).stdout
    assert {f" T {name}" for name in demo.FUNCTIONS} <= {line[line.index(" T ") :] for line in exported.splitlines() if " T " in line}


def test_the_demo_tells_what_is_not_as_it_should_be():
    demo = import_file(CHAPTER / "pluggable_allocator.py")
    right = {name: {"answer": 1.0, "held": held, "seconds": 0.1} for name, held in zip(demo.ALLOCATORS, (9, 6, 4), strict=True)}
    assert list(demo.faults(right)) == []
    (told,) = demo.faults(right | {demo.POOL: {"answer": 1.0, "held": 6, "seconds": 0.1}})
    assert told.endswith("expected fewer with the page pool than with any other")
    (told,) = demo.faults(right | {demo.POOL: {"answer": 2.0, "held": 4, "seconds": 0.1}})
    assert told.endswith("expected the same with every allocator")


def test_without_a_gpu_the_demo_says_so():
    command = [sys.executable, str(CHAPTER / "pluggable_allocator.py")]
    environment = {"PYTHONPATH": str(PROJECT_ROOT), "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, env=environment)
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr == "ch13/pluggable_allocator.py: found no CUDA device; expected one, whose memory is looked at\n"

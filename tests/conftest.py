"""Which tests run where and when: those marked `gpu` on a CUDA device, those marked `alone` while no other test runs.

A run is refused while another process computes on its GPU, and pytest's own is one as soon as a test has used CUDA in it. So tests that
time on a GPU by the command line are marked `unused_gpu` too and go before all others.
"""

import fcntl
from contextlib import contextmanager

import pytest


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: item.get_closest_marker("unused_gpu") is None)
    marked = [item for item in items if item.get_closest_marker("gpu")]
    for item in items:
        # One process has a file's fixtures, and one the GPU.
        item.add_marker(pytest.mark.xdist_group("gpu" if item in marked else item.path.as_posix()))
    if not marked:
        return
    import torch

    if not torch.cuda.is_available():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="needs a CUDA device; torch finds none"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    with turn(item.config.rootpath / ".pytest_cache", alone=item.get_closest_marker("alone") is not None):
        return (yield)


@contextmanager
def turn(folder, *, alone):
    """Wait until no test runs if this one must be `alone`, or else until none that must be. Who waits lets nobody past."""
    folder.mkdir(exist_ok=True)
    with (folder / "queue.lock").open("w") as queue, (folder / "running.lock").open("w") as running:
        fcntl.flock(queue, fcntl.LOCK_EX)
        fcntl.flock(running, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(queue, fcntl.LOCK_UN)
        yield

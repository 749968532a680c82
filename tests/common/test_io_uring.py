"""Reads by io_uring: the right bytes, never more in flight than the ring has room for, and what a failed or a short read says."""

import errno
import os
from pathlib import Path

import numpy as np
import pytest

from common import io_uring
from common.io_uring import Ring
from common.python.machine.storage_needs import unmet_storage

pytestmark = pytest.mark.skipif(bool(unmet_storage(["io_uring"], gpu=False, folder=Path("/"))), reason="no io_uring")

DEPTH = 8


@pytest.fixture
def ring():
    made = Ring(DEPTH)
    yield made
    made.close()


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "records"
    path.write_bytes(os.urandom(100 * 512))
    with path.open("rb", buffering=0) as stream:
        yield stream


@pytest.mark.parametrize("records", [1, DEPTH - 1, DEPTH, DEPTH + 1, 100])
def test_every_record_gets_the_bytes_at_its_offset(ring, file, records):
    offsets = np.random.default_rng(records).permutation(100)[:records] * 512
    for _ in range(3):  # heads and tails go on from where they were
        into = np.zeros((records, 512), dtype=np.uint8)
        ring.read(file.fileno(), offsets, into)
        assert [row.tobytes() for row in into] == [os.pread(file.fileno(), 512, offset) for offset in offsets]


def test_no_more_are_in_flight_than_the_ring_has_room_for(ring, file, monkeypatch):
    in_flight, most = 0, 0
    enter, reap = Ring._enter, Ring._reap

    def entered(self, more, least):
        nonlocal in_flight, most
        in_flight += more
        most = max(most, in_flight)
        assert least <= in_flight
        enter(self, more, least)

    def reaped(self, length):
        nonlocal in_flight
        answered = reap(self, length)
        in_flight -= answered
        return answered

    monkeypatch.setattr(Ring, "_enter", entered)
    monkeypatch.setattr(Ring, "_reap", reaped)
    ring.read(file.fileno(), np.arange(100) * 512, np.zeros((100, 512), dtype=np.uint8))
    assert (most, in_flight) == (DEPTH, 0)


def test_a_read_that_the_end_of_the_file_cuts_short_is_an_error(ring, file):
    with pytest.raises(OSError, match="io_uring read 256 bytes of 512"):
        ring.read(file.fileno(), np.array([99 * 512 + 256]), np.zeros((1, 512), dtype=np.uint8))


def test_a_read_that_fails_says_why(ring):
    with pytest.raises(OSError, match="Bad file descriptor") as raised:
        ring.read(2**20, np.array([0]), np.zeros((1, 512), dtype=np.uint8))
    assert raised.value.errno == errno.EBADF


def test_a_kernel_that_refuses_says_why(monkeypatch):
    monkeypatch.setattr(io_uring, "_SETUP", 0xFFFF)  # no such system call
    with pytest.raises(OSError, match="Function not implemented"):
        Ring(DEPTH)

"""What the page cache holds of a file is told, and looking at it brings nothing in."""

import mmap
import os

import pytest

from common.python.machine.page_cache import cached_pages

PAGES = 512


@pytest.fixture
def file(tmp_path):
    if os.statvfs(tmp_path).f_fsid == os.statvfs("/dev/shm").f_fsid:
        pytest.skip("the temporary folder is in memory; its files cannot leave it")
    with (tmp_path / "file").open("w+b") as opened:
        opened.write(bytes(PAGES * mmap.PAGESIZE - 1))
        opened.flush()
        os.fsync(opened)
        yield opened


def dropped(file):
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return file.fileno()


def test_a_file_that_was_written_is_there_whole_and_one_that_was_dropped_is_not(file):
    assert cached_pages(file.fileno()) == PAGES
    assert cached_pages(dropped(file)) == 0


def test_pages_that_were_read_are_there_and_no_others(file):
    descriptor = dropped(file)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)  # no reading ahead
    for page in (0, 7, PAGES - 1):
        os.pread(descriptor, 1, page * mmap.PAGESIZE)
    assert cached_pages(descriptor) == 3


def test_looking_brings_nothing_in(file):
    descriptor = dropped(file)
    assert [cached_pages(descriptor) for _ in range(100)] == [0] * 100


def test_an_empty_file_has_no_pages(tmp_path):
    with (tmp_path / "empty").open("w+b") as empty:
        assert cached_pages(empty.fileno()) == 0

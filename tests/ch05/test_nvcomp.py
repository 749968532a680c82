"""ch05's way to nvCOMP: the arguments in the order of nvCOMP's header, on a library that is made up, and a refusal that is told."""

import ctypes
import sys
from types import SimpleNamespace

import pytest
import torch

from common.python.child.sides.loader import import_file
from tests.support.teeth import ROOT

NVCOMP = import_file(ROOT / "ch05/shared_nvcomp.py")


class Library(dict):
    """Functions by name that keep their arguments, need 100 bytes, and return `status`."""

    def __init__(self, status=0):
        super().__init__()
        self.calls, self.status = {}, status

    def __missing__(self, name):
        def function(*arguments):
            self.calls[name] = arguments
            if name.endswith("GetTempSize"):
                ctypes.cast(arguments[3], ctypes.POINTER(ctypes.c_size_t))[0] = 100
            return self.status

        return function


@pytest.fixture
def library(monkeypatch):
    made = Library()
    package = SimpleNamespace(load_library=lambda: made)
    monkeypatch.setitem(sys.modules, "nvidia", SimpleNamespace(libnvcomp=package))
    monkeypatch.setitem(sys.modules, "nvidia.libnvcomp", package)
    monkeypatch.setattr(NVCOMP, "_stream", lambda tensor: ctypes.c_void_p(7))
    return made


def test_arguments_are_in_the_order_of_the_header(library):
    restored = torch.empty(3, 5, dtype=torch.int64)
    decompress = NVCOMP.Decompressor("snappy", restored, NVCOMP.ENGINE)
    chunks, row, options, _, total, _ = library.calls["nvcompBatchedSnappyDecompressGetTempSize"]
    assert (chunks.value, row.value, options.backend, total.value) == (3, 40, 1, 120)
    addresses, sizes = torch.tensor([1, 2, 3]), torch.tensor([4, 5, 6])
    decompress(addresses, sizes)
    packed, lengths, room, found, count, _, temporary, rows, options, statuses, stream = library.calls["nvcompBatchedSnappyDecompressAsync"]
    assert (packed.value, lengths.value, count.value, temporary.value, stream.value) == (addresses.data_ptr(), sizes.data_ptr(), 3, 100, 7)
    read = [list((ctypes.c_int64 * 3).from_address(each.value)) for each in (room, rows)]
    assert read == [[40] * 3, [restored.data_ptr() + 40 * i for i in range(3)]]
    assert (statuses.value, options.backend) == (decompress.statuses.data_ptr(), 1)
    assert found.value not in (room.value, rows.value)


def test_a_refusal_is_told(library):
    library.status = 11
    with pytest.raises(RuntimeError, match="nvcompBatchedLZ4DecompressGetTempSize returned status 11; expected 0"):
        NVCOMP.Decompressor("lz4", torch.empty(1, 1, dtype=torch.int64), NVCOMP.SMS)


def test_the_options_are_as_long_as_nvcomps():
    assert ctypes.sizeof(NVCOMP._Options) == 64

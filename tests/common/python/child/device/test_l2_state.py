"""The L2 as a GPU's timer leaves it: empty of what was read before, however that was marked, and no launch slower for it."""

import ctypes
import statistics
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from common.python.child.device import driver
from common.python.child.device.driver import Kernels, current_stream
from common.python.child.device.sampler import DeviceTimer

PTX = Path(__file__).with_name("l2_reads.ptx")
HOLD_NS = 2_000_000_000
SET_ASIDE, MOST_SET_ASIDE, WINDOW, PERSISTING, STREAMING = 6, 108, 1, 2, 1  # CUlimit, CUdevice_attribute, CUlaunchAttributeID, ...
SAMPLES = 24
LAUNCHES = 32

pytestmark = pytest.mark.gpu


class Window(ctypes.Structure):
    """CUaccessPolicyWindow, in the 64 bytes of a launch attribute's value."""

    _fields_ = (
        ("base", ctypes.c_uint64),
        ("bytes", ctypes.c_size_t),
        ("hit_ratio", ctypes.c_float),
        ("hit", ctypes.c_int),
        ("miss", ctypes.c_int),
        ("padding", ctypes.c_byte * 36),
    )


class Reads:
    """A buffer of some MiB that is read plainly, or so that it would stay in the L2."""

    def __init__(self, mib):
        self.data = torch.zeros(mib << 18, dtype=torch.int32, device="cuda")
        self.unlikely = torch.zeros(4, dtype=torch.int32, device="cuda")
        self.kernels = Kernels(PTX, ("read_plainly", "read_to_last"))

    def read(self, how="read_plainly"):
        quads = self.data.numel() // 4
        self.kernels.launch(how, quads // 256, 256, self.data.data_ptr(), quads, self.unlikely.data_ptr())

    def to_last(self):
        self.read("read_to_last")

    def persisting(self, *, gives_back):
        """By a window over the buffer, with as much of the L2 set aside as can be."""
        most = ctypes.c_int()
        driver.call("cuDeviceGetAttribute", ctypes.byref(most), ctypes.c_int(MOST_SET_ASIDE), ctypes.c_int(0))
        set_aside(most.value)
        self.window(self.data.nbytes)
        self.read()
        self.window(0)
        if gives_back:
            set_aside(0)

    def window(self, size):
        window = Window(self.data.data_ptr(), size, 1.0, PERSISTING if size else 0, STREAMING if size else 0)
        driver.call("cuStreamSetAttribute", current_stream(), ctypes.c_int(WINDOW), ctypes.byref(window))


def set_aside(size):
    driver.call("cuCtxSetLimit", ctypes.c_int(SET_ASIDE), ctypes.c_size_t(size))


MARKED = {
    "evict_last": Reads.to_last,
    "set aside": lambda reads: reads.persisting(gives_back=False),
    "set aside and given back": lambda reads: reads.persisting(gives_back=True),
}


@pytest.fixture(autouse=True)
def on_a_stream():
    with torch.cuda.stream(torch.cuda.Stream()):
        torch.cuda.synchronize()
        yield
        set_aside(0)


def median_ns(timer, before, step, samples=SAMPLES):
    found = []
    for _ in range(samples):
        before()
        timer.chill()
        found.append(timer.time([step], HOLD_NS)[0].ns)
    return statistics.median(found)


@pytest.mark.parametrize("mib", [4, 24])
@pytest.mark.parametrize("marked", MARKED.values(), ids=MARKED)
def test_what_was_read_to_stay_is_gone_as_what_was_read_plainly(marked, mib):
    reads, timer = Reads(mib), DeviceTimer(torch.device("cuda"), "clean")
    plain_ns = median_ns(timer, reads.read, reads.read)

    assert median_ns(timer, lambda: [marked(reads) for _ in range(2)], reads.read) > 0.96 * plain_ns


def test_what_was_read_to_stay_would_be_seen():
    reads, timer = Reads(4), DeviceTimer(torch.device("cuda"), "hot")
    cold_ns = median_ns(DeviceTimer(torch.device("cuda"), "clean"), reads.read, reads.read)

    assert median_ns(timer, reads.to_last, reads.read) < 0.93 * cold_ns


def test_launches_take_as_long_however_often_the_l2_was_put_in_its_state():
    cold, hot = (DeviceTimer(torch.device("cuda"), state) for state in ("clean", "hot"))
    word = torch.zeros(1, device="cuda")

    def launches():
        for _ in range(LAUNCHES):
            word.fill_(1.0)

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=torch.cuda.current_stream()):
        launches()
    another_context_has_its_turn()
    for step in (launches, graph.replay):
        # With a reset before each: 1.07 of it, and 1.5.
        assert median_ns(cold, lambda: None, step, samples=64) < 1.05 * median_ns(hot, lambda: None, step)


def another_context_has_its_turn():
    """After which resets, those of the tests before this one too, count from 0 again."""
    subprocess.run([sys.executable, "-c", "import torch; torch.zeros(1, device='cuda').item()"], check=True)

"""What a side holds is told by torch's allocator and, beside it, by the driver; a device that a test plays stands for both."""

import time

import pytest
import torch

from common.python.child.device.footprint import Footprint, Start, blocks_of, footprint_of

TOTAL = 1000
CODE = 3  # bytes that a first step loads, of no allocator


class Device:
    """A device of TOTAL bytes: `inside` torch's allocator, of which some is in use, and `outside` it."""

    def __init__(self):
        self.in_use, self.inside, self.outside = 10, 20, 0
        self.reset()

    def free(self):
        return TOTAL - self.inside - self.outside

    def reserved(self):
        return self.inside

    def most_reserved(self):
        return max(self.peak_inside, self.inside)

    def most_allocated(self):
        return self.peak_in_use

    def reset(self):
        self.peak_in_use, self.peak_inside = self.in_use, self.inside

    def wait(self):
        pass

    def allocate(self, count):
        """Take memory of torch's allocator, which takes it from the driver where it has none."""
        self.in_use += count
        self.inside = max(self.inside, self.in_use)
        self.peak_in_use, self.peak_inside = max(self.peak_in_use, self.in_use), max(self.peak_inside, self.inside)

    def release(self, count):
        self.in_use -= count


def test_what_torchs_allocator_gives_out_is_counted_at_its_peak():
    device = Device()

    def step():
        device.allocate(500)
        device.release(500)

    assert footprint_of(step, Start.of(device), device) == Footprint(allocated=510, outside=0)


def test_what_prepare_holds_is_counted_whoever_gave_it():
    device = Device()
    start = Start.of(device)
    device.allocate(100)
    device.outside += 400  # hidden from torch's allocator: of a call of cudaMalloc
    assert footprint_of(lambda: None, start, device) == Footprint(allocated=110, outside=400)


def test_what_a_step_takes_beside_the_allocator_and_gives_back_is_met_by_a_look():
    device = Device()

    def step():
        device.outside += 400
        time.sleep(0.002)  # a kernel works on it
        device.outside -= 400

    assert footprint_of(step, Start.of(device), device).outside == 400


def test_the_code_of_kernels_is_what_lies_outside_an_honest_side():
    device = Device()
    loaded = []

    def step():
        if not loaded:
            device.outside += CODE
            loaded.append(True)
        device.allocate(30)
        device.release(30)

    assert footprint_of(step, Start.of(device), device) == Footprint(allocated=40, outside=CODE)


def test_a_step_that_raises_ends_the_looks():
    def step():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        footprint_of(step, Start(0, 0), Device())


def test_blocks_that_torch_gives_a_step_on_a_cpu_are_counted_with_their_bytes():
    x = torch.ones(1000)

    def step():
        return [torch.empty_like(x) for _ in range(50)]

    assert blocks_of(step) == (50, 50 * 4000)
    assert blocks_of(lambda: torch.neg(x, out=x)) == (0, 0)

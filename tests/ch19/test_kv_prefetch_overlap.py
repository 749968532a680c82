"""ch19:kv_prefetch_overlap by a model of streams: a host that queues one thing after the other, and a device that runs them."""

from contextlib import contextmanager
from dataclasses import dataclass, field
from unittest import mock

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from common.python.child.sides.loader import import_file
from common.python.profile.steps import hidden_share
from tests.support.chapters import modules_of
from tests.support.teeth import ROOT

BLOCK_S, STEP_S = 1e-5, 5.5e-3  # a block of a layer over PCIe; what a group computes
COPY_HOST_S, STEP_HOST_S = 2.5e-5, 1e-3  # what the host takes to queue a copy, as it is watched, and a step
BLOCK = 256 * 128  # elements of one head
SHAPE = {"layers": 2, "width": 2, "conversations": 8, "context": 16384, "message": 512, "turns": 2, "group": 2, "block": 256}


@dataclass
class Stream:
    """When it has done what was queued, and the spans in which it worked."""

    free_s: float = 0.0
    spans: list = field(default_factory=list)

    def wait_stream(self, other):
        self.free_s = max(self.free_s, other.free_s)

    def wait_event(self, at_s):
        self.free_s = max(self.free_s, at_s)

    def record_event(self):
        return self.free_s


class Device(TorchDispatchMode):
    """Stands for torch.cuda; a copy takes time in the stream that is current, and moves nothing."""

    def __init__(self):
        super().__init__()
        self.host_s, self.main, self.streams, self.copies = 0.0, Stream(), [], 0
        self.now = self.main

    def Stream(self):
        self.streams.append(Stream())
        return self.streams[-1]

    def current_stream(self):
        return self.now

    @contextmanager
    def stream(self, stream):
        then, self.now = self.now, stream
        yield
        self.now = then

    def queue(self, host_s, device_s):
        self.host_s += host_s
        start = max(self.host_s, self.now.free_s)
        self.now.free_s = start + device_s
        self.now.spans.append((start, self.now.free_s))

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.overloadpacket is torch.ops.aten.copy_ and args[0].dim() > 2:  # no logits
            self.copies += 1
            self.queue(COPY_HOST_S, BLOCK_S * args[0].numel() / BLOCK)
            return args[0]
        return function(*args, **(kwargs or {}))


@pytest.fixture
def ran(monkeypatch):
    """The modelled device behind a step of a side, which is not the first."""

    def run(name):
        with modules_of(ROOT / "ch19", monkeypatch):
            side = import_file(ROOT / f"ch19/{name}.py")
            history = torch.empty(2, 8 * 64, 256, 1, 128, dtype=torch.bfloat16)
            device = Device()

            def serve(weights, config, pool, active, chunks):
                for conversation, chunk in zip(active, chunks, strict=True):
                    pool.append(conversation, len(chunk))
                device.queue(STEP_HOST_S, STEP_S)
                return torch.zeros(len(active), config.vocabulary, dtype=torch.bfloat16)

            messages = torch.zeros(2, 8, 512, dtype=torch.int64)
            with mock.patch.object(side, "serve", serve), mock.patch.object(torch, "get_device_module", return_value=device):
                step = side.prepare({}, history, history.clone(), messages, **SHAPE)
                with device:
                    step()
                    device.host_s = max(stream.free_s for stream in (device.main, *device.streams))
                    for stream in (device.main, *device.streams):
                        stream.spans.clear()
                    device.copies = 0
                    step()
            return device

    return run


def share(device):
    return hidden_share(stream.spans for stream in (device.main, *device.streams))


def test_steps_hide_behind_the_next_groups_copies(ran):
    """The bound is the one that the side claims on a GPU."""
    assert share(ran("optimized_kv_prefetch_overlap")) >= 0.5


def test_one_stream_hides_nothing(ran):
    assert share(ran("baseline_kv_prefetch_overlap")) == 0


@pytest.mark.parametrize("name", ["baseline_kv_prefetch_overlap", "optimized_kv_prefetch_overlap"])
def test_blocks_that_follow_one_another_are_one_copy(ran, name):
    """Of 8 conversations, keys and values of 2 layers: a history and messages back, and in turn 2 earlier messages beside the history."""
    assert ran(name).copies == 8 * 2 * 2 * ((1 + 1) + (2 + 1))

"""The seal names what was replaced of what the harness uses, and lets everything else be."""

from __future__ import annotations

import builtins
import math
import signal
import sys
import time

import pytest
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data._utils import signal_handling

from common.python.child import server, worker
from common.python.child.device import sampler
from common.python.child.sides import compare, inputs
from common.python.child.tamper import seal

assert server  # with it all of the harness is loaded, as it is where the seal is made
BROKEN = seal()

pytestmark = pytest.mark.timeout(300, method="thread")  # the other method has a signal's handler, which the seal refuses


@pytest.fixture(autouse=True)
def whole_before_and_after():
    assert BROKEN() == ""
    yield
    assert BROKEN() == ""


@pytest.mark.parametrize(
    ("owner", "name", "told"),
    [
        (sampler, "_clock_ns", "common.python.child.device.sampler._clock_ns"),
        (compare, "snapshot", "common.python.child.sides.compare.snapshot"),
        (worker, "_LINGER_S", "common.python.child.worker._LINGER_S"),
        (inputs.Inputs, "rewrite", "common.python.child.sides.inputs.Inputs.rewrite"),
        (worker.Worker, "answer", "common.python.child.worker.Worker.answer"),
        (torch.Tensor, "detach", "torch.Tensor.detach"),
        (torch.Tensor, "uniform_", "torch.Tensor.uniform_"),
        (torch.cuda, "synchronize", "torch.cuda.synchronize"),
        (torch.cuda.Event, "elapsed_time", "torch.cuda.streams.Event.elapsed_time"),
        (torch, "empty", "torch.empty"),
        (time, "perf_counter", "time.perf_counter"),
    ],
)
def test_what_the_harness_uses_is_sealed(owner, name, told, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, lambda *_: None, raising=False)
        assert BROKEN() == f"found {told} replaced by the side; expected the harness as it was"


@pytest.mark.parametrize("name", ["__getattribute__", "__setattr__"])
def test_a_class_of_the_harness_gets_no_hook(name, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(worker.Worker, name, object.__dict__[name])
        assert f"common.python.child.worker.Worker.{name}" in BROKEN()


def test_a_global_cannot_take_a_builtins_place(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(compare, "zip", lambda *_, **__: iter(()), raising=False)
        assert "common.python.child.sides.compare.zip" in BROKEN()


def test_code_cannot_be_exchanged_in_place(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(compare.snapshot, "__code__", (lambda tensors: {}).__code__)
        assert "the code of snapshot in common.python.child.sides.compare" in BROKEN()


@pytest.mark.parametrize("mode", [TorchFunctionMode, TorchDispatchMode])
def test_a_mode_is_seen(mode):
    with mode():
        assert "torch mode" in BROKEN()


def test_a_profile_function_is_seen():
    before = sys.getprofile()
    sys.setprofile(lambda *_: None)
    try:
        found = BROKEN()
    finally:
        sys.setprofile(before)
    assert "profile function" in found


def test_a_handler_of_a_signal_is_seen():
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        assert "a handler of SIGUSR1" in BROKEN()
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_the_handler_of_a_data_loader_is_free_unless_it_calls_one_from_before(monkeypatch):
    before = signal.getsignal(signal.SIGCHLD)
    try:
        for handler, told in ((signal.SIG_DFL, ""), (lambda *_: None, "a handler of SIGCHLD")):
            monkeypatch.setattr(signal_handling, "_SIGCHLD_handler_set", False)
            signal.signal(signal.SIGCHLD, handler)
            signal_handling._set_SIGCHLD_handler()
            assert signal.getsignal(signal.SIGCHLD) is not handler
            assert (told in BROKEN()) if told else BROKEN() == ""
    finally:
        signal.signal(signal.SIGCHLD, before)


@pytest.mark.filterwarnings("ignore")
def test_an_operator_registered_anew_is_seen():
    library = torch.library.Library("aten", "IMPL")
    library.impl("clone", torch.empty_like, "CPU", allow_override=True)
    try:
        assert "aten/clone/CPU" in BROKEN()
    finally:
        library._destroy()


@pytest.mark.parametrize(("owner", "name"), [(torch, "matmul"), (torch.nn.functional, "gelu"), (math, "sin"), (builtins, "pow")])
def test_what_the_harness_does_not_use_is_free(owner, name, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, lambda *_: None)
        assert BROKEN() == ""


def test_ordinary_work_breaks_nothing():
    torch.manual_seed(1)
    layer = torch.nn.Linear(3, 3)
    torch.optim.Adam(layer.parameters())
    layer(torch.ones(3)).sum().backward()
    torch.set_float32_matmul_precision("high")
    torch.set_float32_matmul_precision("highest")
    with torch.inference_mode(), torch.autocast("cpu"):
        layer(torch.ones(3))


def test_what_stands_in_a_modules_place_is_passed_over(monkeypatch):
    monkeypatch.setitem(sys.modules, "a_library.shadow", object())
    assert seal.__wrapped__()() == ""

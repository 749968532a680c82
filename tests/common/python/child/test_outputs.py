"""An output reaches the referee bit for bit, by file or by lent GPU memory, and nothing of another size is taken for it."""

import subprocess
import sys

import pytest
import torch

from common.python.child.outputs import dump, read_dump
from common.python.child.sides.compare import changed
from common.python.errors import SideFailure, Status
from common.python.machine.description import child_environment
from common.python.pairs.workload import Spec
from common.python.processes.messages import Dump
from common.python.project import PROJECT_ROOT

CPU = torch.device("cpu")


def refusal(dumped, spec, device=CPU):
    with pytest.raises(SideFailure) as caught:
        read_dump(dumped, spec, device)
    assert caught.value.status is Status.WRONG_RESULT
    return caught.value.reason


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.int64, torch.bool], ids=str)
def test_an_output_arrives_bit_for_bit_and_its_file_is_gone(tmp_path, dtype):
    sent = torch.arange(6).reshape(2, 3).to(dtype)
    (dumped,) = dump({"y": sent}, str(tmp_path / "1"))
    arrived = read_dump(dumped, Spec((2, 3), dtype), CPU)
    assert arrived.dtype == dtype
    assert changed({"y": sent}, [("y", arrived)]) == []
    assert list(tmp_path.iterdir()) == []


def test_a_dump_of_another_size_is_refused(tmp_path):
    (dumped,) = dump({"y": torch.zeros(4)}, str(tmp_path / "1"))
    assert refusal(dumped, Spec((5,), torch.float32)) == "output y: found 16 bytes; expected 20 bytes"
    nowhere = Dump(name="y", path=str(tmp_path / "none"))
    assert refusal(nowhere, Spec((5,), torch.float32)) == "output y: found no file; expected 20 bytes"


# A process that lends a tensor that is neither the first nor the only thing in its block, as torch's allocator places them; the
# step's last kernel, on a stream of its own, is still at work when the harness asks for the tensor.
LENDER = """
import sys, torch
from common.python.child.device.helpers import device_helpers
from common.python.child.outputs import dump
before, y, aside = torch.ones(1 << 18, device="cuda"), torch.zeros(1 << 19, device="cuda"), torch.cuda.Stream()
torch.cuda.synchronize()
with torch.cuda.stream(aside):
    device_helpers().spin(200_000_000)
    y.copy_(torch.arange(1 << 19, device="cuda"))
(dumped,) = dump({"y": y}, sys.argv[1])
print(dumped.model_dump_json(), flush=True)
sys.stdin.read()
"""


@pytest.mark.gpu
def test_a_large_output_on_a_gpu_is_read_where_it_lies_when_all_that_was_queued_is_done(tmp_path):
    device = torch.device("cuda")
    lender = subprocess.Popen(
        [sys.executable, "-c", LENDER, str(tmp_path / "1")],
        env=child_environment(PROJECT_ROOT, "cuda"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        dumped = Dump.model_validate_json(lender.stdout.readline())
        assert dumped.handle
        assert list(tmp_path.iterdir()) == []
        arrived = read_dump(dumped, Spec((1 << 19,), torch.float32), device)
        assert torch.equal(arrived, torch.arange(1 << 19, device=device).float())
        assert refusal(dumped, Spec((1 << 18,), torch.float32), device) == f"output y: found {4 << 19} bytes; expected {4 << 18} bytes"
        beyond = dumped.model_copy(update={"offset": 1 << 40})
        assert "expected them inside" in refusal(beyond, Spec((1 << 19,), torch.float32), device)
    finally:
        lender.communicate()


@pytest.mark.gpu
def test_a_small_output_on_a_gpu_is_written(tmp_path):
    device = torch.device("cuda")
    sent = torch.arange(100, device=device)
    (dumped,) = dump({"y": sent}, str(tmp_path / "1"))
    assert not dumped.handle
    assert torch.equal(read_dump(dumped, Spec((100,), torch.int64), device), sent)

"""The baseline of labs/blackwell_matmul as a module: its import builds what a run builds; what its kernel cannot do is refused."""

import ctypes
import importlib

import pytest
import torch

from common.python.build import nvcc
from tests.support.cuda_sides import skip_without_tools

NAME = "labs.blackwell_matmul.baseline_blackwell_matmul"


@pytest.fixture
def module():
    skip_without_tools()
    return importlib.import_module(NAME)


def ones(rows, columns, dtype=torch.bfloat16):
    return torch.ones(rows, columns, dtype=dtype)


def test_the_import_builds_the_side(module):
    from labs.blackwell_matmul import baseline_blackwell_matmul

    assert baseline_blackwell_matmul is module
    assert ctypes.CDLL(str(module.BUILT.library)).launch


@pytest.mark.parametrize(
    ("a", "b", "says"),
    [
        (ones(8, 8, torch.float32), ones(8, 8), "a: found 2 dimensions of torch.float32"),
        (ones(8, 8), ones(8, 8)[0], "b: found 1 dimensions"),
        (ones(8, 16), ones(8, 8), "found 8 x 16 and 8 x 8; expected rows of one length"),
        (ones(8, 12), ones(8, 12), "a multiple of 8"),
        (ones(8, 8), ones(4, 8), "a multiple of 8 rows of b"),
        (ones(8, 8), ones(8, 8), "found a on cpu and b on cpu; expected both on one GPU"),
    ],
)
def test_what_the_kernel_cannot_do_is_refused(module, a, b, says):
    with pytest.raises(ValueError, match=says):
        module.matmul(a, b)


@pytest.mark.gpu
def test_it_multiplies(module):
    a, b = torch.randn(129, 72, device="cuda").bfloat16(), torch.randn(264, 72, device="cuda").bfloat16()
    torch.testing.assert_close(module.matmul(a, b).float(), (a.float() @ b.float().T), rtol=2**-7, atol=1e-3)


def test_without_nvcc_the_import_fails_and_says_so(module, monkeypatch):
    def missing():
        raise nvcc.NvccMissing

    monkeypatch.setattr(nvcc, "find_nvcc", missing)
    with pytest.raises(ImportError, match=r"baseline_blackwell_matmul\.cu: no nvcc on PATH"):
        importlib.reload(module)

"""Chapter 18: what the library's side of flex_attention asks of PyTorch's varlen_attn, which has no kernel for a CPU."""

import pytest
import torch
from torch.nn.attention import varlen

from common.python.child.sides.loader import import_file
from common.python.project import PROJECT_ROOT

workload = import_file(PROJECT_ROOT / "ch18/workload_flex_attention.py")


def dense_varlen(q, k, v, starts, key_starts, longest, longest_keys, *, window_size):
    """varlen_attn as its documentation has it: a document after the other, a window that counts from a query's own token."""
    assert torch.equal(starts, key_starts)
    assert longest == longest_keys == starts.diff().max()
    y = torch.empty_like(q)
    for start, end in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True):
        at = torch.arange(end - start)
        behind = at[:, None] - at[None, :]
        seen = (behind <= window_size[0]) & (behind >= -window_size[1])
        document = (x[start:end].transpose(0, 1) for x in (q, k, v))
        y[start:end] = torch.nn.functional.scaled_dot_product_attention(*document, attn_mask=seen).transpose(0, 1)
    return y


@pytest.mark.parametrize("window", [1, 2, 40, 300])
def test_the_library_sees_what_the_mask_lets_see(monkeypatch, window):
    monkeypatch.setattr(varlen, "varlen_attn", dense_varlen)
    library = import_file(PROJECT_ROOT / "ch18/library_flex_attention.py")
    q, k, v = torch.randn(3, 1, 2, 100, 16, generator=torch.Generator().manual_seed(0))
    document = torch.repeat_interleave(torch.tensor([1, 2, 3]), torch.tensor([50, 33, 17]))
    y = library.prepare(q, k, v, document, window)()
    assert y.is_contiguous()
    torch.testing.assert_close(y, workload.reference(q, k, v, document, window))

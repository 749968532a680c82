"""ch05:gpu_input: which formats there are, and where the compressed chunks lie."""

import sys

import pytest
import torch

from common.python.child.sides.loader import import_file
from common.python.child.sides.loader import load_workload as load
from tests.support.teeth import ROOT

FORMATS = import_file(ROOT / "ch05/shared_formats.py")


def test_an_unknown_format_is_one_sentence_also_without_the_packages(monkeypatch):
    monkeypatch.setitem(sys.modules, "cramjam", None)
    outputs = load(ROOT / "ch05/workload_gpu_input.py").outputs
    with pytest.raises(ValueError, match=r"^compression='zip'; expected lz4, snappy or deflate$"):
        outputs(chunks=1, tokens=1, compression="zip")


@pytest.mark.parametrize("compression", FORMATS.FORMATS)
def test_chunks_lie_apart_and_aligned_and_what_they_hold_is_restored(compression):
    pytest.importorskip("cramjam")
    ids = torch.randint(2**62, (3, 500), generator=torch.Generator().manual_seed(0))  # no format makes them smaller
    packed, starts, sizes = FORMATS.compressed(ids, compression)
    assert not (starts % FORMATS.ALIGNED).any()
    assert (starts[1:] >= (starts + sizes)[:-1]).all()
    assert starts[-1] + sizes[-1] <= len(packed)
    _, decompress_into = FORMATS.codec(compression)
    restored = torch.empty_like(ids)
    for chunk, row in zip(FORMATS.views(packed, starts, sizes), restored.numpy().view("u1"), strict=True):
        decompress_into(chunk, row)
    assert torch.equal(restored, ids)

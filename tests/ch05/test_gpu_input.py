"""ch05:gpu_input: which formats there are, where compressed chunks lie, how well its text compresses, and what the baseline overlaps."""

import sys
import time

import pytest
import torch

from common.python.child.sides.inputs import Rand
from common.python.child.sides.loader import import_file
from common.python.child.sides.loader import load_workload as load
from tests.support.teeth import CPU, ROOT

FORMATS = import_file(ROOT / "ch05/shared_formats.py")
TEXT = import_file(ROOT / "ch05/shared_text.py")
CHUNK = 65536


def test_an_unknown_format_is_one_sentence_also_without_the_packages(monkeypatch):
    monkeypatch.setitem(sys.modules, "cramjam", None)
    outputs = load(ROOT / "ch05/workload_gpu_input.py").outputs
    with pytest.raises(ValueError, match=r"^compression='zip'; expected lz4, snappy or deflate$"):
        outputs(chunks=1, chunk_bytes=1, compression="zip")


@pytest.mark.parametrize("compression", FORMATS.FORMATS)
def test_chunks_lie_apart_and_aligned_and_what_they_hold_is_restored(compression):
    pytest.importorskip("cramjam")
    rows = torch.randint(256, (3, 4001), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))  # no format makes them smaller
    packed, starts, sizes = FORMATS.compressed(rows, compression)
    assert not (starts % FORMATS.ALIGNED).any()
    assert (starts[1:] >= (starts + sizes)[:-1]).all()
    assert starts[-1] + sizes[-1] <= len(packed)
    _, decompress_into = FORMATS.codec(compression)
    restored = torch.empty_like(rows)
    for chunk, row in zip(FORMATS.views(packed, starts, sizes), restored.numpy(), strict=True):
        decompress_into(chunk, row)
    assert torch.equal(restored, rows)


def text_of(seed, size, folder):
    return TEXT.text(Rand(seed, CPU, folder), size)


@pytest.mark.parametrize("size", [1, 97, CHUNK])
def test_the_text_is_as_long_as_asked_and_of_letters_and_spaces(size, tmp_path):
    found = text_of(3, size, tmp_path)
    assert (found.dtype, len(found)) == (torch.uint8, size)
    assert set(found.tolist()) <= set(TEXT.LETTERS) | {TEXT.SPACE}
    assert not torch.equal(text_of(4, CHUNK, tmp_path), text_of(5, CHUNK, tmp_path))


@pytest.mark.parametrize("compression", FORMATS.FORMATS)
def test_the_text_compresses_as_the_predictions_say(compression, tmp_path):
    pytest.importorskip("cramjam")
    found = []
    for seed in range(3):
        rows = text_of(seed, 16 * CHUNK, tmp_path).view(16, CHUNK)
        found.append(rows.numel() / int(FORMATS.compressed(rows, compression)[2].sum()))
    assert found == pytest.approx([TEXT.RATIOS[compression]] * 3, rel=0.04)


def test_the_baseline_copies_what_is_ready_while_it_still_decompresses(monkeypatch, tmp_path):
    pytest.importorskip("cramjam")
    side = import_file(ROOT / "ch05/baseline_gpu_input.py")
    chunks = 9 * side.GROUP
    rows = text_of(1, chunks * 64, tmp_path).view(chunks, 64)
    _, decompress_into = FORMATS.codec("lz4")
    last, waited = rows[-1].numpy(), []

    def wait_for_the_first(chunk, row):
        decompress_into(chunk, row)
        if (row == last).all() and copied:
            until = time.monotonic() + 10
            while not torch.equal(copied[0][0], rows[0]) and time.monotonic() < until:
                time.sleep(0.001)
            waited.append(torch.equal(copied[0][0], rows[0]))

    monkeypatch.setattr(side, "codec", lambda _: (None, wait_for_the_first))
    running = side.prepare(*FORMATS.compressed(rows, "lz4"), chunks=chunks, chunk_bytes=64, compression="lz4")
    step, copied = next(running), []
    copied.append(step().zero_())
    assert torch.equal(step(), rows)
    assert waited == [True]
    running.close()

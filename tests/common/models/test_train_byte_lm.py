"""How the byte-level models are made: which bytes, that training learns them, and what is written."""

import argparse
import hashlib
import json

import pytest
import torch

from common.models import train_byte_lm
from common.models.config import Config
from common.models.train_byte_lm import library_files, rate_at, read_corpus, train, validation_loss, write
from common.tensor_files import read_tensors

CPU = torch.device("cpu")
SMALL = Config(vocabulary=256, hidden=32, layers=1, heads=2, kv_heads=1, head_dim=16, intermediate=48, tied=True)


@pytest.fixture
def library(tmp_path):
    root = tmp_path / "python3"
    for number in range(40):
        path = root / ("package" if number % 2 else ".") / f"module_{number:02}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"def function_{number}(value):\n    return value + {number}\n" * 20)
    for other in ("site-packages/a.py", "test/b.py", "package/tests/c.py", "_sysconfigdata_x.py", "data.txt"):
        (root / other).parent.mkdir(parents=True, exist_ok=True)
        (root / other).write_text("other")
    return root


def test_the_corpus_is_the_library_in_a_fixed_order(library):
    names = [path.relative_to(library).as_posix() for path in library_files(library)]
    assert names == sorted(names)
    assert len(names) == 40
    corpus = read_corpus(library)
    assert (corpus.files, corpus.digest) == (40, read_corpus(library).digest)
    assert corpus.training.tolist().count(0) == 38
    assert corpus.validation.tolist().count(0) == 2


def test_the_digest_is_of_names_and_of_contents(library):
    before = read_corpus(library).digest
    path = library / "module_00.py"
    path.rename(library / "module_0.py")
    renamed = read_corpus(library).digest
    (library / "module_0.py").write_text("changed")
    assert len({before, renamed, read_corpus(library).digest}) == 3


def test_training_learns_and_keeps_what_did_best_on_files_held_out(library, monkeypatch):
    monkeypatch.setattr(train_byte_lm, "VALIDATE_EVERY", 20)
    corpus = read_corpus(library)
    options = argparse.Namespace(steps=60, batch=8, context=64)
    weights, done = train(options, SMALL, corpus, CPU)
    assert done["kept_step"] in (20, 40, 60)
    assert {tensor.dtype for tensor in weights.values()} == {SMALL.dtype}
    assert validation_loss(weights, SMALL, corpus.validation, 64) < 3.5  # of ln 256 = 5.5 before


def test_the_rate_rises_and_falls_to_zero():
    rates = [rate_at(progress) for progress in (0.0, train_byte_lm.WARM_UP, 0.5, 1.0)]
    assert rates[0] == rates[-1] == 0
    assert rates[1] == pytest.approx(train_byte_lm.PEAK_RATE)
    assert 0 < rates[2] < rates[1]


def test_what_is_written_can_be_read_and_is_registered(tmp_path):
    weights = {"embedding": torch.randn(4, 3).to(torch.bfloat16)}
    write(tmp_path, "first", weights, {"steps": 3})
    write(tmp_path, "second", weights, {"steps": 4})
    data = (tmp_path / "first.safetensors").read_bytes()
    registry = json.loads((tmp_path / "assets.json").read_text())
    assert registry["first"] == {"file": "first.safetensors", "sha256": hashlib.sha256(data).hexdigest()}
    assert list(registry) == ["first", "second"]
    assert json.loads((tmp_path / "first.json").read_text())["steps"] == 3
    assert torch.equal(read_tensors(data, CPU)["embedding"], weights["embedding"])

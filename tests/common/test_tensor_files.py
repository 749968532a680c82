"""Files of tensors: what is written is read, by this reader and by the safetensors package."""

import pytest
import torch

from common.tensor_files import read_tensors, write_tensors

CPU = torch.device("cpu")
TENSORS = {
    "b": torch.arange(6, dtype=torch.int64).reshape(2, 3),
    "a.odd": torch.tensor([1, 2, 3], dtype=torch.uint8),
    "scalar": torch.tensor(2.5),
    "half": torch.randn(4, 5).to(torch.bfloat16).T,
    "eighth": torch.randn(3).to(torch.float8_e4m3fn),
    "none": torch.empty(0, 4),
}


def same(found, expected):
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert torch.equal(found.float(), expected.float())


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "x.safetensors"
    write_tensors(path, TENSORS)
    found = read_tensors(path.read_bytes(), CPU)
    assert list(found) == sorted(TENSORS)
    for name, tensor in TENSORS.items():
        same(found[name], tensor)


def test_equal_tensors_make_equal_files(tmp_path):
    first, second = tmp_path / "1", tmp_path / "2"
    write_tensors(first, TENSORS)
    write_tensors(second, dict(reversed(TENSORS.items())))
    assert first.read_bytes() == second.read_bytes()


def test_the_safetensors_package_reads_and_writes_the_same(tmp_path):
    package = pytest.importorskip("safetensors.torch")
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    contiguous = {name: tensor.contiguous() for name, tensor in TENSORS.items()}
    write_tensors(ours, TENSORS)
    package.save_file(contiguous, theirs, metadata={"format": "pt"})
    for found in (package.load_file(ours), read_tensors(theirs.read_bytes(), CPU)):
        for name, tensor in TENSORS.items():
            same(found[name], tensor)


@pytest.mark.parametrize("data", [b"", b"short", (1 << 40).to_bytes(8, "little") + b"{}", (4).to_bytes(8, "little") + b"text"])
def test_other_bytes_are_refused(data):
    with pytest.raises(ValueError, match="expected a safetensors file"):
        read_tensors(data, CPU)


def test_a_file_that_is_cut_off_is_refused(tmp_path):
    path = tmp_path / "x"
    write_tensors(path, TENSORS)
    with pytest.raises(ValueError, match="cut off"):
        read_tensors(path.read_bytes()[:-4], CPU)

"""What is kept is read back as it was written, or not at all."""

import pytest

from common.python.build.cache import is_as_named, keep, keep_by_content, kept

TEXT = "Function : copy\n\n  ünd EXIT ;\n"


def test_a_text_comes_back(tmp_path):
    keep(tmp_path / "build/a", TEXT)
    assert kept(tmp_path / "build/a") == TEXT
    assert list((tmp_path / "build").iterdir()) == [tmp_path / "build/a"]


@pytest.mark.parametrize("damage", [lambda it: it[:-1], lambda it: it[:10], lambda it: b"", lambda it: it.replace(b"EXIT", b"EXIX")])
def test_what_is_damaged_is_not_there(tmp_path, damage):
    keep(tmp_path / "a", TEXT)
    (tmp_path / "a").write_bytes(damage((tmp_path / "a").read_bytes()))
    assert kept(tmp_path / "a") is None
    keep(tmp_path / "a", TEXT)
    assert kept(tmp_path / "a") == TEXT


def test_what_was_never_kept_is_not_there(tmp_path):
    assert kept(tmp_path / "a") is None


def test_a_file_is_named_by_its_content_and_a_damaged_copy_is_replaced(tmp_path):
    (tmp_path / "0.cubin").write_bytes(b"\x7fELF")
    copy = keep_by_content(tmp_path / "0.cubin", tmp_path / "build")
    assert (copy.parent, copy.suffix, copy.read_bytes()) == (tmp_path / "build", ".cubin", b"\x7fELF")
    assert keep_by_content(copy, tmp_path / "build") == copy
    copy.write_bytes(b"\x7fEL")
    assert not is_as_named(copy)
    assert keep_by_content(tmp_path / "0.cubin", tmp_path / "build") == copy
    assert is_as_named(copy)
    assert list((tmp_path / "build").iterdir()) == [copy]


def test_a_cache_that_cannot_be_written_fails_nobody(tmp_path):
    (file := tmp_path / "0.cubin").write_bytes(b"\x7fELF")
    (tmp_path / "build").touch()
    keep(tmp_path / "build/a", TEXT)
    assert kept(tmp_path / "build/a") is None
    assert keep_by_content(file, tmp_path / "build") == file
    assert keep_by_content(tmp_path / "absent.cubin", tmp_path) == tmp_path / "absent.cubin"

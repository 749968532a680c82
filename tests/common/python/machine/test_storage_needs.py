"""What a need of storage says where it is not met, on machines that are made up for it."""

import subprocess
from pathlib import Path

import pytest

from common.python.machine import storage_needs
from common.python.machine.storage_needs import decompression_mask, filesystem_of, unmet_storage

HERE = Path(__file__).parent
MEMORY = Path("/dev/shm")


def reasons(*needs, gpu=True, folder=HERE):
    return unmet_storage(needs, gpu=gpu, folder=folder)


def test_a_folder_in_memory_is_no_disk():
    assert filesystem_of(MEMORY) == "tmpfs"
    assert reasons("disk", folder=MEMORY) == ["needs a disk; /dev/shm is on tmpfs, which keeps files in memory"]


def test_a_folder_whose_mount_the_kernel_does_not_list_is_taken_for_a_disk(monkeypatch, tmp_path):
    (tmp_path / "mounts").write_text("25 1 99:99 / /far rw - ext4 /dev/far rw\n")
    monkeypatch.setattr(storage_needs, "_MOUNTS", tmp_path / "mounts")
    assert (filesystem_of(MEMORY), reasons("disk", folder=MEMORY)) == ("", [])


def test_a_kernel_that_refuses_io_uring_says_why(monkeypatch):
    monkeypatch.setattr(storage_needs, "_IO_URING_SETUP", 0xFFFF)  # no such system call
    assert reasons("io_uring") == ["needs io_uring; this kernel refuses it: Function not implemented"]


def test_the_driver_of_gpudirect_storage_is_looked_for(monkeypatch, tmp_path):
    monkeypatch.setattr(storage_needs, "_GDS_DRIVER", tmp_path / "version")
    assert reasons("gds", gpu=False) == ["needs gds; no CUDA device"]
    assert reasons("gds") == ["needs gds; the driver of GPUDirect Storage, nvidia-fs, is not loaded"]
    (tmp_path / "version").touch()
    monkeypatch.setattr(storage_needs, "filesystem_of", lambda _: "ext4")
    assert reasons("gds") == []


@pytest.mark.parametrize(("kind", "told"), [("overlay", ["needs gds; /here is on overlay, which cuFile does not read directly"]), ("", [])])
def test_gpudirect_storage_needs_a_file_system_that_cufile_knows(monkeypatch, tmp_path, kind, told):
    monkeypatch.setattr(storage_needs, "_GDS_DRIVER", tmp_path)
    monkeypatch.setattr(storage_needs, "filesystem_of", lambda _: kind)
    assert reasons("gds", folder=Path("/here")) == told


@pytest.mark.parametrize(("printed", "mask"), [("0 7", 7), ("0 0", 0), ("100 0", 0), ("", 0)])
def test_the_drivers_mask_tells_of_a_decompression_engine(monkeypatch, printed, mask):
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, printed, ""))
    assert decompression_mask() == mask
    assert reasons("decompression_engine") == ([] if mask else ["needs decompression_engine; the driver's mask of its formats is 0"])


def test_without_a_driver_there_is_no_decompression_engine(monkeypatch):
    monkeypatch.setattr(storage_needs, "_ASK_MASK", "raise OSError({attribute})")
    assert decompression_mask() == 0
    assert reasons("decompression_engine", gpu=False) == ["needs decompression_engine; no CUDA device"]


def test_nothing_is_asked_that_is_not_named(monkeypatch):
    monkeypatch.setattr(storage_needs, "filesystem_of", pytest.fail)
    assert reasons("tma", "gpus") == []

"""What a `needs:` line may ask of storage, asked when it is named: a disk, io_uring, GPUDirect Storage, a decompression engine."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

STORAGE = ("disk", "io_uring", "gds", "decompression_engine")

_IN_MEMORY = ("tmpfs", "ramfs", "devtmpfs")
_IO_URING_SETUP = 425  # the system call's number, the same on x86-64 and aarch64
_PARAMS_BYTES = 120  # of struct io_uring_params
_GDS_DRIVER = Path("/proc/driver/nvidia-fs/version")
_GDS_FILE_SYSTEMS = ("ext4", "xfs", "nfs", "nfs4", "lustre", "wekafs", "gpfs", "beegfs", "scatefs", "virtiofs")  # that cuFile knows
_MOUNTS = Path("/proc/self/mountinfo")
_ALGORITHM_MASK = 136  # CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK, of cuda.h 12.8 and above
_ASK_MASK = """
import ctypes
mask = ctypes.c_int(0)
driver = ctypes.CDLL("libcuda.so.1")
print(driver.cuInit(0) or driver.cuDeviceGetAttribute(ctypes.byref(mask), {attribute}, 0), mask.value)
"""


def unmet_storage(needs: Sequence[str], *, gpu: bool, folder: Path) -> list[str]:
    """Why those of `needs` that are about storage are not met, a sentence each; `folder` is where the input files will lie."""
    asked: dict[str, Callable[[], str]] = {
        "disk": lambda: _no_disk(folder),
        "io_uring": _no_io_uring,
        "gds": lambda: _no_gds(folder, gpu=gpu),
        "decompression_engine": lambda: _no_engine(gpu=gpu),
    }
    return [reason for name in needs if name in asked and (reason := asked[name]())]


def filesystem_of(folder: Path) -> str:
    """The type of the file system that holds `folder`, such as ext4; "" where the kernel lists no mount of its device."""
    number = folder.stat().st_dev
    device = f"{os.major(number)}:{os.minor(number)}"
    found = re.search(rf"^\d+ \d+ {device} .* - (\S+) ", _MOUNTS.read_text(encoding="utf-8"), re.MULTILINE)
    return found[1] if found else ""


def decompression_mask() -> int:
    """Which formats the first GPU's decompression engine takes, as the driver's bits (1 deflate, 2 Snappy, 4 LZ4); 0 without one.

    A process of its own asks, since one that has started the driver must not fork.
    """
    program = _ASK_MASK.format(attribute=_ALGORITHM_MASK)
    try:
        answer = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, text=True, timeout=60, check=True)
        status, mask = map(int, answer.stdout.split())
    except (OSError, ValueError, subprocess.SubprocessError):
        return 0
    return 0 if status else mask


def _no_disk(folder: Path) -> str:
    kind = filesystem_of(folder)
    return f"needs a disk; {folder} is on {kind}, which keeps files in memory" if kind in _IN_MEMORY else ""


def _no_io_uring() -> str:
    library = ctypes.CDLL(None, use_errno=True)
    descriptor = library.syscall(_IO_URING_SETUP, 1, ctypes.create_string_buffer(_PARAMS_BYTES))
    if descriptor < 0:
        return f"needs io_uring; this kernel refuses it: {os.strerror(ctypes.get_errno())}"
    os.close(descriptor)
    return ""


def _no_gds(folder: Path, *, gpu: bool) -> str:
    """Asks for the driver and the kind of file system. The disk, ext4's journal and RDMA are cuFile's to ask, when it opens a file."""
    if not gpu:
        return "needs gds; no CUDA device"
    if not _GDS_DRIVER.exists():
        return "needs gds; the driver of GPUDirect Storage, nvidia-fs, is not loaded"
    kind = filesystem_of(folder)
    return f"needs gds; {folder} is on {kind}, which cuFile does not read directly" if kind and kind not in _GDS_FILE_SYSTEMS else ""


def _no_engine(*, gpu: bool) -> str:
    if not gpu:
        return "needs decompression_engine; no CUDA device"
    return "" if decompression_mask() else "needs decompression_engine; the driver's mask of its formats is 0"

"""What this machine has of GPUDirect Storage, and one file read through kvikio, in the mode that the machine allows, which is named.

./setup.sh python ch05/gpudirect_storage_example.py

SKIPPED, with the reason, where a GPU or kvikio is missing. Without the driver the mode is the compatibility mode, which is not direct.
"""

import tempfile
from pathlib import Path

import torch

from common.python.machine.needs import unmet_packages
from common.python.machine.storage_needs import unmet_storage

SIZE = (16 << 20) + 1  # bytes: no multiple of a page


def mode_of(gpu):
    """The name of kvikio's mode, and why it is not the direct one; "" if it is."""
    reason = "; ".join(unmet_storage(["gds"], gpu=gpu, folder=Path()))
    return ("ON" if reason else "OFF"), reason


def read(mode):
    """Write a file and read it into the device's memory. Raises SystemExit where other bytes arrive."""
    import kvikio
    import kvikio.defaults

    with tempfile.NamedTemporaryFile(dir=".") as file, kvikio.defaults.set({"compat_mode": kvikio.CompatMode[mode]}):
        right = torch.randint(256, (SIZE,), dtype=torch.uint8)
        file.write(right.numpy())
        file.flush()
        found = torch.zeros(SIZE, dtype=torch.uint8, device="cuda")
        with kvikio.CuFile(file.name) as stream:
            count = stream.pread(found).get()
        if count != SIZE or not torch.equal(found.cpu(), right):
            raise SystemExit(f"found {count} bytes, or others than were written; expected the {SIZE} of the file")
    print(f"{SIZE} bytes arrived in the GPU's memory, the same as in the file")


def main():
    """Say what there is, and read where that is possible."""
    gpu = torch.cuda.is_available()
    missing = "needs a GPU; no CUDA device" if not gpu else unmet_packages(["package kvikio"])
    if missing:
        print(f"SKIPPED: {missing}")
        return
    mode, reason = mode_of(gpu)
    print(f"compatibility mode, which is not direct: {reason}" if reason else "direct: the driver of GPUDirect Storage is loaded")
    read(mode)


if __name__ == "__main__":
    main()

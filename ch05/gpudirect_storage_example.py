"""What this machine has of GPUDirect Storage, and one file read through kvikio, in the mode that the machine allows, which is named.

./setup.sh python ch05/gpudirect_storage_example.py

SKIPPED, with the reason, where a GPU or kvikio is missing. Without the driver, or on a file system that cuFile does not read directly, the
mode is the compatibility mode, which is not direct. A read is called direct once it succeeded with copies through the host forbidden.
"""

import tempfile
from pathlib import Path

import torch
from shared_kvikio import kvikio_in

from common.python.machine.needs import unmet_packages
from common.python.machine.storage_needs import unmet_storage

SIZE = (16 << 20) + 1  # bytes: no multiple of a page


def mode_of(gpu):
    """The name of kvikio's mode, and why it is not the direct one; "" if it is."""
    reason = "; ".join(unmet_storage(["gds"], gpu=gpu, folder=Path()))
    return ("ON" if reason else "OFF"), reason


def read(mode):
    """Write a file and read it into the device's memory. Raises SystemExit where other bytes arrive, or no direct way is found."""
    with tempfile.NamedTemporaryFile(dir=".") as file, kvikio_in(mode) as kvikio:
        right = torch.randint(256, (SIZE,), dtype=torch.uint8)
        file.write(right.numpy())
        file.flush()
        found = torch.zeros(SIZE, dtype=torch.uint8, device="cuda")
        try:
            with kvikio.CuFile(file.name) as stream:
                count = stream.pread(found).get()
        except (RuntimeError, OSError) as error:
            raise SystemExit(f"found no way to read {Path(file.name).resolve()} in kvikio's mode {mode}: {error}") from error
        if count != SIZE or not torch.equal(found.cpu(), right):
            raise SystemExit(f"found {count} bytes, or others than were written; expected the {SIZE} of the file")
    return f"{SIZE} bytes arrived in the GPU's memory, the same as in the file"


def main():
    """Say what there is, and read where that is possible."""
    gpu = torch.cuda.is_available()
    missing = "needs a GPU; no CUDA device" if not gpu else unmet_packages(["package kvikio"])
    if missing:
        print(f"SKIPPED: {missing}")
        return
    mode, reason = mode_of(gpu)
    arrived = read(mode)
    print(f"compatibility mode, which is not direct: {reason}" if reason else "direct: cuFile may not copy through the host, and read")
    print(arrived)


if __name__ == "__main__":
    main()

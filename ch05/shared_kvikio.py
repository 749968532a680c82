"""A file read into the device's memory by kvikio, which drives cuFile, the library of GPUDirect Storage."""

import json
import os
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

BLOCK = 4 << 20  # bytes a request
READERS = 4  # threads, each with one request in flight


def forbid_copies(folder):
    """Have cuFile fail where it cannot read directly. By default it copies through the host's memory then: its own compatibility mode.

    Takes effect before kvikio is first imported in the process: cuFile reads its settings once. They are in a file in `folder`, in place of
    /etc/cufile.json, so that no other setting is the machine's. Two variables would overrule the file.
    Source: NVIDIA, GPUDirect Storage configuration guide, "GPUDirect Storage parameters".
    """
    settings = Path(folder, "cufile.json")
    settings.write_text(json.dumps({"properties": {"allow_compat_mode": False}}), encoding="utf-8")
    os.environ["CUFILE_ENV_PATH_JSON"] = str(settings)
    os.environ["CUFILE_ALLOW_COMPAT_MODE"] = os.environ["CUFILE_FORCE_COMPAT_MODE"] = "false"


@contextmanager
def kvikio_in(mode):
    """Kvikio, an optional package, in its compatibility `mode`, with the settings of this chapter.

    OFF: cuFile reads directly or not at all. RuntimeError is raised where a file cannot be opened or read so, however few bytes are asked.
    ON: kvikio's threads read into pinned memory and copy from there, as it is without the driver. cuFile is not asked.
    """
    with TemporaryDirectory() as folder:
        if mode == "OFF":
            forbid_copies(folder)
        import kvikio
        import kvikio.defaults

        settings = {"compat_mode": kvikio.CompatMode[mode], "num_threads": READERS, "task_size": BLOCK}
        with kvikio.defaults.set({**settings, "gds_threshold": 0}):  # smaller reads would go through the host's memory
            yield kvikio


def by_kvikio(file, order, records, record_bytes, mode):
    """Yield a step that reads `file` and returns its records, each `record_bytes` long, in `order`. `mode` is that of `kvikio_in`."""
    stored = torch.empty(records * record_bytes, dtype=torch.uint8, device=order.device)
    epoch = torch.empty(records, record_bytes, dtype=torch.uint8, device=order.device)

    with kvikio_in(mode) as kvikio:

        def step():
            torch.cuda.current_stream(order.device).synchronize()  # kvikio's copies do not wait for kernels that still read `stored`
            with kvikio.CuFile(file) as stream:
                stream.pread(stored).get()
            return torch.index_select(stored.view(records, record_bytes), 0, order, out=epoch)

        yield step

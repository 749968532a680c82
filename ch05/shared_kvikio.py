"""A file read into the device's memory by kvikio, which drives cuFile, the library of GPUDirect Storage."""

import torch

BLOCK = 4 << 20  # bytes a request
READERS = 4  # threads, each with one request in flight


def by_kvikio(file, order, records, record_bytes, mode):
    """Yield a step that reads `file` and returns its records, each `record_bytes` long, in `order`. Meanwhile settings of kvikio hold.

    `mode` OFF: directly or not at all. ON: kvikio's threads read into pinned memory and copy from there, as it is without the driver.
    """
    import kvikio  # an optional package
    import kvikio.defaults

    stored = torch.empty(records * record_bytes, dtype=torch.uint8, device=order.device)
    epoch = torch.empty(records, record_bytes, dtype=torch.uint8, device=order.device)

    def step():
        torch.cuda.current_stream(order.device).synchronize()  # kvikio's copies do not wait for kernels that still read `stored`
        with kvikio.CuFile(file) as stream:
            stream.pread(stored).get()
        return torch.index_select(stored.view(records, record_bytes), 0, order, out=epoch)

    with kvikio.defaults.set({"compat_mode": kvikio.CompatMode[mode], "num_threads": READERS, "task_size": BLOCK}):
        yield step

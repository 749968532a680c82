"""Read a batch by several threads: one copies from the page cache at a fraction of the speed at which the device is fed."""

import os

READERS = 8


def fill(readers, descriptor, batch, buffer):
    """Batch number `batch` of the file into `buffer`, uint8 on the host, by `readers`, an executor of READERS threads."""
    bytes_of = memoryview(buffer.flatten().numpy())  # a view: buffers are contiguous
    part = -(-len(bytes_of) // READERS)
    begin = batch * len(bytes_of)
    starts = range(0, len(bytes_of), part)
    for _ in readers.map(lambda start: read(descriptor, begin + start, bytes_of[start : start + part]), starts):
        pass


def read(descriptor, offset, into):
    """Fill `into` from `offset` on: the system may read less than it is asked for. Raises EOFError where the file ends before."""
    while into:
        if not (count := os.preadv(descriptor, [into], offset)):
            raise EOFError(f"found the file's end at byte {offset}; expected {len(into)} more")
        into, offset = into[count:], offset + count

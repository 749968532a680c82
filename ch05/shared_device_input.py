"""Compressed chunks copied to the device as they are, and decompressed there by nvCOMP."""

import torch
from shared_nvcomp import Decompressor


def on_device(packed, starts, sizes, chunks, chunk_bytes, compression, backend):
    """A step that returns the text (chunks, chunk_bytes), decompressed on `backend`."""
    text = torch.empty(chunks, chunk_bytes, dtype=torch.uint8, device="cuda")
    copied, offsets, lengths = (torch.empty_like(each, device="cuda") for each in (packed, starts, sizes))
    decompress = Decompressor(compression, text, backend)

    def step():
        end = int(starts[-1] + sizes[-1])
        copied[:end].copy_(packed[:end], non_blocking=True)
        offsets.copy_(starts, non_blocking=True)
        lengths.copy_(sizes, non_blocking=True)
        decompress(offsets + copied.data_ptr(), lengths)
        return text

    return step

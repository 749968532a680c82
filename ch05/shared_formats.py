"""Compressed formats that a CPU and nvCOMP both know, and bytes cut into chunks, each of which is compressed by itself."""

import numpy as np
import torch

ALIGNED = 16  # bytes: where a chunk may start
FORMATS = ("lz4", "snappy", "deflate")  # raw streams without a frame around them


def require_format(compression):
    """Raises ValueError unless `compression` is one of FORMATS."""
    if compression not in FORMATS:
        raise ValueError(f"compression={compression!r}; expected {', '.join(FORMATS[:-1])} or {FORMATS[-1]}")


def codec(compression):
    """What compresses bytes to bytes, and what decompresses a buffer into another, by cramjam."""
    import cramjam  # an optional package: whoever reads the workload may lack it

    return {
        "lz4": (lambda data: cramjam.lz4.compress_block(data, store_size=False), cramjam.lz4.decompress_block_into),
        "snappy": (cramjam.snappy.compress_raw, cramjam.snappy.decompress_raw_into),
        "deflate": (lambda data: cramjam.deflate.compress(data, level=1), cramjam.deflate.decompress_into),
    }[compression]


def compressed(rows, compression):
    """`rows` of uint8 (chunks, bytes) as compressed chunks: their bytes, and where each starts and how long it is, in bytes (chunks,).

    The bytes are as many as would hold chunks that no format makes smaller; what is behind the last chunk is zero.
    """
    compress, _ = codec(compression)
    chunks = [np.frombuffer(compress(row.tobytes()), dtype=np.uint8) for row in rows.cpu().numpy()]
    sizes = torch.tensor([len(chunk) for chunk in chunks])
    ends = (-(-sizes // ALIGNED) * ALIGNED).cumsum(0)
    starts = torch.cat([torch.zeros(1, dtype=torch.int64), ends[:-1]])
    most = rows.shape[1]
    packed = torch.zeros(len(chunks) * (most + most // 6 + 64), dtype=torch.uint8)  # Snappy grows what it cannot shrink by up to a sixth
    for start, chunk in zip(starts.tolist(), chunks, strict=True):
        packed[start : start + len(chunk)] = torch.from_numpy(chunk.copy())
    return packed, starts, sizes


def views(packed, starts, sizes):
    """The compressed bytes of each chunk, as arrays that share the memory of `packed`."""
    data = packed.numpy()
    return [data[start : start + size] for start, size in zip(starts.tolist(), sizes.tolist(), strict=True)]

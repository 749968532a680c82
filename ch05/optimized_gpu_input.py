"""Optimized: chunks travel compressed; the GPU decompresses them."""
# needs: gpus 1, package nvidia.libnvcomp
# predicts: baseline 2.87 ms = chunk_bytes * (chunks * max(1 / (8 * 1.5e9), 1 / h2d) + 64 / h2d) on h100  (1.5 GB/s a thread: assumed)
# predicts: optimized 0.935 ms = chunks * chunk_bytes * (1 / 1.88 / h2d + 1 / 60e9) + 20e-6 on h100  (60 GB/s by nvCOMP: assumed)
# proves: kernel nvcomp

from shared_device_input import on_device
from shared_nvcomp import SMS


def prepare(packed, starts, sizes, chunks, chunk_bytes, compression):
    return on_device(packed, starts, sizes, chunks, chunk_bytes, compression, SMS)

"""Optimized: cuDNN: FlashAttention's tiling, with wgmma."""
# needs: tma
# expects: 2.2x, 1.98 ms, in which 8.6 GB of scores pass DRAM, against 550 GFLOP at 600 TFLOP/s: it multiplies with wgmma or tcgen05
# proves: kernel cudnn

from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention


def prepare(q, k, v):
    def step():
        with sdpa_kernel([SDPBackend.CUDNN_ATTENTION]):  # or an error, never another backend
            return scaled_dot_product_attention(q, k, v)

    return step

"""Optimized: FlashAttention: scores never leave the chip."""
# expects: 1.4x, 1.98 ms, in which 8.6 GB of scores pass DRAM, against 550 GFLOP at 380 TFLOP/s: it multiplies with mma.sync
# proves: kernel flash_fwd

from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention


def prepare(q, k, v):
    def step():
        with sdpa_kernel([SDPBackend.FLASH_ATTENTION]):  # or an error, never another backend
            return scaled_dot_product_attention(q, k, v)

    return step

"""Optimized: FlashAttention: scores never leave the chip."""
# predicts: baseline 2.00 ms = 8 * batch * heads * seq**2 / dram_copy  (scores, 2 bytes each, pass DRAM four times)
# predicts: optimized 1.45 ms = 4 * batch * heads * seq**2 * dim / 380e12 on h200  (flops; mma.sync assumed at 380 TFLOP/s)
# proves: kernel flash_fwd
# proves: counter dram__bytes.sum < 0.2 x baseline
# The bound: q, k, v and y are 0.27 GB, the scores' four passes 8.6 GB; 0.27 / 8.9 is 0.03, with room for k and v read again.

from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention


def prepare(q, k, v):
    def step():
        with sdpa_kernel([SDPBackend.FLASH_ATTENTION]):  # raises an error where this backend cannot run, never another backend
            return scaled_dot_product_attention(q, k, v)

    return step

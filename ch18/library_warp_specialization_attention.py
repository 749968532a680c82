"""Library: PyTorch's attention by cuDNN, or by FlashAttention where cuDNN's is not available."""

from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention


def prepare(q, k, v, causal):
    batch = [x[None] for x in (q, k, v)]

    def step():
        with sdpa_kernel([SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION], set_priority=True):
            return scaled_dot_product_attention(*batch, is_causal=bool(causal))[0]

    return step

"""Library: PyTorch's attention by cuDNN, or by FlashAttention where cuDNN's is not available."""

from library_warp_specialization_attention import prepare

__all__ = ["prepare"]

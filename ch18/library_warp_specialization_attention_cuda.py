"""Library: PyTorch's attention, as for warp_specialization_attention."""

from library_warp_specialization_attention import prepare

__all__ = ["prepare"]

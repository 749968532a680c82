"""Library: torch.mm of bfloat16 into float32, which is cuBLAS with wgmma on Hopper."""

from library_tensor_core import prepare

__all__ = ["prepare"]

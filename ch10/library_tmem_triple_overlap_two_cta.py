"""Library: torch.mm, which is cuBLAS's product."""

from shared_matmul import prepare

__all__ = ["prepare"]

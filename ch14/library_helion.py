"""Library: torch.mm, which is cuBLAS's product."""

from shared_matmul import library as prepare

__all__ = ["prepare"]

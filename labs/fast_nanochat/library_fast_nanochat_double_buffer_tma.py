"""Library: torch.mm, which is cuBLAS's product."""

from shared_head_library import prepare

__all__ = ["prepare"]

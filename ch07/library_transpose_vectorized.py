"""Library: torch.compile of a transposed copy, as for transpose."""

from library_transpose import prepare

__all__ = ["prepare"]

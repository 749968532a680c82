"""Library: PyTorch's copy_: the driver's device-to-device copy."""

from library_copy import prepare

__all__ = ["prepare"]

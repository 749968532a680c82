"""A matrix product in Triton with a program an SM: tiles loaded by pointers, or by tensor descriptors."""
# needs: tma

from workload_triton_persistent import WORKLOAD

__all__ = ["WORKLOAD"]

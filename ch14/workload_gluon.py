"""A matrix product by a program an SM: in Triton, whose compiler places loads and waits, or in Gluon, where they are written out."""
# needs: wgmma, tma
# baseline: ch14/optimized_triton_persistent.py

from workload_triton_persistent import WORKLOAD

__all__ = ["WORKLOAD"]

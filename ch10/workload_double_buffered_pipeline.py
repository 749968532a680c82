"""Product of two bf16 matrices by mma.sync: c = a b^T, as shared_matmul.py states it."""

from shared_matmul import MATMUL

WORKLOAD = MATMUL

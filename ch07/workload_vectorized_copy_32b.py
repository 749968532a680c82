"""Copy an array of float32, by accesses of 16 or 32 bytes per thread: y[i] = x[i].

The baseline is the optimized side of vectorized_copy, so that the ratio is of 32 bytes over 16, not over 4.

Predicted: 1x, by the equation of workload_vectorized_copy.py. A B200 (published: 8 TB/s, 148 SMs) needs 17.6 KB in flight per SM.
One float4 per thread is 32 KB, and 64 KB are no faster. Half as many instructions remain, and DRAM hides those of either side.

Measured: nobody has run this pair.
"""
# baseline: ch07/optimized_vectorized_copy.cu

from shared_copy import COPY

WORKLOAD = COPY

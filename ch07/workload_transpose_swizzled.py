"""Transpose a float32 matrix through a tile in shared memory, padded or swizzled: y[c, r] = x[r, c].

The baseline is the optimized side of transpose, whose tile is padded. So the ratio is of the swizzle, not of the tile.

Predicted: 1x. Both sides move 8 bytes per float through DRAM, and a row or a column of either tile takes 1 wavefront.
The swizzle saves 128 of 4224 bytes per tile. That gains only where shared memory limits the blocks per SM.
A block has 128 threads, so 16 blocks fill an SM's 2048 threads. With CUDA's own 1 KB they take 82 of 228 KB padded, 80 KB swizzled.

Measured: RESULTS.md.
"""
# baseline: ch07/optimized_transpose.cu

from shared_transpose import TRANSPOSE

WORKLOAD = TRANSPOSE

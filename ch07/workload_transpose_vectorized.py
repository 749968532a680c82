"""Transpose a float32 matrix by 16-byte accesses: y[c, r] = x[r, c].

The baseline is that of transpose. Three steps stand between: the padded tile of 32 x 32, tiles of 64 x 64, and blocks down columns.
So the last step is 16-byte accesses, and the swizzle that they need.

Predicted: 3x, all of it the tile's: 36 bytes per float through the L2, then 8 through DRAM. Measured: RESULTS.md.
"""
# baseline: ch07/baseline_transpose.cu

from dataclasses import replace

from shared_transpose import TRANSPOSE

WORKLOAD = replace(TRANSPOSE, ladder=("ch07/optimized_transpose.cu", "large_tiles", "down_columns"))

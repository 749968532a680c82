"""Transpose a float32 matrix by 16-byte accesses: y[c, r] = x[r, c].

The baseline is that of transpose. The padded tile stands between as a step, so the last step is what the wider accesses gain.

Predicted: 3x, all of it the tile's: 36 bytes per float through the L2, then 8 through DRAM. Measured: RESULTS.md.
"""
# baseline: ch07/baseline_transpose.cu

from dataclasses import replace

from shared_transpose import TRANSPOSE

WORKLOAD = replace(TRANSPOSE, ladder=("ch07/optimized_transpose.cu",))

"""Copy an array of float32, by accesses of 4 or 16 bytes per thread: y[i] = x[i]. Of 32 bytes: workload_vectorized_copy_32b.py.

Predicted: bytes in flight = rate x latency (Little's law). An H200 copies 4.3 TB/s, of which half is read.
Each of its 132 SMs needs 16 bytes per ns x 650 ns of loaded latency = 10.6 KB of loads in flight.
One float per thread is 8 KB per SM, so the baseline reaches 8 / 10.6 of the copy rate: 1.3x.
One float4 per thread is 32 KB per SM, which is enough. So are four floats in four accesses, the step four_floats.

Measured: RESULTS.md. The baseline is slower than predicted.

Why: the prediction assumes that an SM's 2048 threads are always resident. But a slot is empty from a block's end to the next one's start.
A block of the baseline copies 1 KB. It lives for 540 ns, and its slot then stays empty for 240 ns.
sm__warps_active is 71 % for this kernel in hbm_copy, so about 5.8 KB are in flight (H200).
Blocks start 0.74 ns apart over the whole GPU. A tuning run (H200) found 0.62 ns as the least.
"""

from dataclasses import replace

from shared_copy import COPY

WORKLOAD = replace(COPY, ladder=("four_floats",))

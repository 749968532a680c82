"""Transpose a float32 matrix: y[c, r] = x[r, c]. Swizzled instead of padded: workload_transpose_swizzled.py.

Predicted: 3x for both variants. The L2 sets the baseline's time, at 36 bytes per float: 4 read, and a 32-byte sector written.
The L2 is assumed to be 1.5 times as fast as DRAM, as in copy. DRAM sets the variants' times, at 8 bytes per float.

Measured: RESULTS.md. The baseline takes far longer than predicted. The variants are near their prediction.

Why: the 32 sectors of a baseline's store request lie in 32 cache lines, so the L2 receives a request per float.
lts__t_requests_srcunit_tex_op_write.sum is 268 million here, a request per float (all counters: H200).
In copy's baseline it is 10.6 million for 67 million floats, since neighbouring sectors share a request.
The L2's input from the crossbar is full: lts__xbar2lts_cycles_active is 81.5 % here and 85.9 % in copy.
It takes a cycle per request and a cycle per partial sector: 2 cycles per float here, 0.8 in copy.
DRAM does not set the pace, although half of y's sectors are written twice: gpu__dram_throughput is low (expectations_h200.json).

Hypothesis: the variants miss their ceiling by the size of the pieces in which blocks that run together access DRAM.
A row of a 32-float tile is 128 bytes, read and written. The vectorized side reads 256 bytes, and writes whole rows of y.
The padded tile moves no byte twice (dram__bytes.sum in expectations_h200.json).
Its warps are resident and wait for loads: sm__warps_active is 96 %.
long_scoreboard is 19.3 of its 32.1 cycles per instruction.
Transposing itself costs the vectorized side nothing: the TMA moving the same tiles untransposed is no faster.
A tuning run (H200) took 518 us for it, 524 us for the TMA, and 519 to 653 us for 140 other variants.
"""

from dataclasses import replace

from shared_transpose import TRANSPOSE

WORKLOAD = replace(TRANSPOSE, ladder=("strided_reads",))

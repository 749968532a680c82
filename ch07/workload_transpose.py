"""Transpose a float32 matrix: y[c, r] = x[r, c].

Expected 3x, and 7.45x on an H200 with the padded tile (2026-11-22). The 3x took what the L2 takes in of sectors that lie side by side, 6
TB/s: 36 bytes a float. Here each of a warp's 32 sectors lies in a line of its own, so that each is a request. Confirmed: the requests are
one for every float (lts__t_requests_srcunit_tex_op_write.sum, 268 M), and one for 6.4 in the baseline of copy (10.6 M for 67 M), where the
L1 also joins a third of the writes before they leave. What is full is the L2's input from the crossbar, 81.5 % here and 85.9 there
(lts__xbar2lts_cycles_active), and its cycles add up: one for a request, and one for each sector that it writes in part. That is 2 a float
here, and 0.8 there. Also, half of y's sectors leave the L2 in two parts, and are read in between: dram__bytes_write.sum is 1.5 times y, and
as much more is read. That was to refute the explanation; but memory is 16 % busy (gpu__dram_throughput), so that it does not set the pace.

Of the ceiling of a copy, which is 501 us at 4.29 TB/s: expected at time_at before it was timed, four times what 8192 x 8192 took but for
the 2 us of a launch; and measured.
baseline               12 %  12 %  a request to the L2 for every float as before
padded and swizzled    89 %  86 %  a row of a tile is 128 bytes, and what blocks write at a time comes in such pieces
vectorized             97 %  97 %  rows of 256 bytes, and pieces only where they are read
Pieces are what is left to stop the padded tile at 86 %: no byte is moved twice (dram__bytes.sum, 2.13 GB), 96 % of all warps are there
(sm__warps_active), and wait for loads (long_scoreboard, 19.3 of 32.1 cycles an instruction), with memory 77 % busy and the L2 82.

What stops the vectorized one at 97 % is not the turning. A tuning run (2026-11-22, 500 us for cudaMemcpy) had it at 518 us, and the TMA,
which moves the same tiles to the same places and turns nothing, at 524; 140 other ways, with the TMA or cp.async, in persistent blocks, of
other tiles and in other orders, took 519 to 653.
"""

import torch

from common import Spec, Workload

WORKLOAD = Workload(
    inputs=lambda rand, rows, cols: {"x": rand.normal(rows, cols)},
    outputs=lambda rows, cols: {"y": Spec((cols, rows), torch.float32)},
    reference=lambda x: x.T.contiguous(),
    time_at={"rows": 16384, "cols": 16384},  # 1 GiB each way: 18 times an L2 of 60 MB; a launch is 0.4 % of the time
    check_at=(
        {"rows": 33, "cols": 65},
        {"rows": 1, "cols": 1},
        {"rows": 64, "cols": 1024},
        {"rows": 100, "cols": 132},  # whole groups of 4, but not whole tiles
        {"rows": 130, "cols": 60},  # rows of x are aligned for 16-byte accesses, rows of y are not
    ),
    work=lambda rows, cols: {"dram_read": 4 * rows * cols, "dram_write": 4 * rows * cols},
    rtol=0.0,  # a copy is exact
    atol=0.0,
)

"""Transpose a float32 matrix: y[c, r] = x[r, c].

At 8192 x 8192 an H200 gave 7.3x where 3x was expected (2026-11-22). The 3x took what the L2 moves of sectors that lie side by side, 6 TB/s,
as the baseline of copy shows: 36 bytes a float in 402 us. There a request to the L2 is for a line of 128 bytes and brings 4 sectors; here
each of a warp's 32 sectors lies in a line of its own: four times as many requests for as many sectors, 1035 us. That requests are what
takes the time is an explanation. A profile confirms it by lts__t_requests_srcunit_tex_op_write.sum, one for every float, and in copy one
for every four, and refutes it if dram__bytes_write.sum is much more than y: then sectors left the L2 before their 8 floats were there.

Expected at time_at, of the ceiling of a copy, which is 501 us at 4.29 TB/s: four times what 8192 x 8192 took, but for the 2 us of a launch.
baseline               12 %  4.1 ms, a request to the L2 for every float as before
padded and swizzled    89 %  563 us: a row of a tile is 128 bytes, and what blocks write at a time comes in such pieces
vectorized             97 %  515 us: rows of 256 bytes, and pieces only where they are read
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

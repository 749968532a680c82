"""Product of two bf16 matrices by Hopper's TMA and tensor cores, c = a b^T: one role and a block a tile, or two roles and a block an SM.

Roles alone, in blocks of one tile, came to 1.00x on an H200 at either depth: two warpgroups that multiply in turn hide what each waits for.
What is left lies between tiles: 275 us at k = 1024 and 1473 us at 8192 are 16 waves of 17 us and 92 us, of which products take 11 and 86.
With a walk over tiles the next one's first four steps are in shared memory when a store ends: starts are hidden, the store itself is not.
"""

# needs: wgmma, tma
# baseline: ch10/optimized_matmul_wgmma.cu
from shared_matmul import MATMUL

WORKLOAD = MATMUL

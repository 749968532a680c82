"""Product of two bf16 matrices by Hopper's TMA and tensor cores, c = a b^T: one role, a block per tile, or three roles, a block per SM.

Predicted: 16 tiles per SM. The baseline takes 17 us per tile at k = 1024 and 90 us at k = 8192, products 11 us and 86 us of them.
A store by the TMA was counted as 4 panels of 16 KB for each warpgroup, 600 cycles each: 128 to write a panel to shared memory at 128 bytes
per cycle, 256 to send it on at 64 bytes per cycle, the rest for two barriers, a fence and the TMA's start. All four are counted, though the
last one leaves under the next tile's products.

Measured: RESULTS.md. All four times are near their predictions.

Why three ideas are one pair: roles and the walk gain nothing until the TMA stores. What its stores gain alone was not measured.
A loader alone, in blocks of one tile, gained nothing. With a walk over tiles, but stores from registers, the pair gained little: such
a store took 5 us, nearly two cycles for each of its 4096 half-sector pieces, and both warpgroups stored at once while nothing
multiplied. The ladder of `matmul` takes the ideas one by one.
"""

# traffic: a, b and c are 134 MB each at k = 8192, and the L2 holds 60 MB: a and b are read several times, as by torch.mm
# needs: wgmma, tma
# baseline: ch10/optimized_matmul_wgmma.cu
from shared_matmul import MATMUL

WORKLOAD = MATMUL

"""Product of two bf16 matrices by Hopper's TMA and tensor cores, c = a b^T: one role and a block a tile, or three roles and a block an SM.

On an H200 the baseline takes 273 us at k = 1024 and 1440 us at 8192: 16 waves of 17 us and 90 us, of which products take 11 and 86. A
loader alone, in blocks of one tile, gave 1.00x at either depth. With a walk over tiles, which hides starts, and stores from registers it
gave 1.07x and 0.99x, not the 1.24x and 1.04x that were expected: a store took 5 us, not 2.7, which is nearly two cycles, not one, for
each of its 4096 pieces, half sectors of the L2; and both warpgroups stored at once, while nothing was multiplied.

Handed over to the TMA, whole lines leave by themselves, and a warpgroup waits only before it writes its panel again. Of the 600 cycles
that are expected for a panel of each warpgroup, 16 KB, 128 write it at 128 bytes each, 256 send it on at 64, and the others are two
barriers, a fence and what it takes the TMA to begin. All four are counted, though the last one leaves under the next tile's products.

So three ideas are one pair here, as two of them gain nothing until the third is there; the ladder of `matmul` takes them one by one.
"""

# traffic: a, b and c are 134 MB each at k = 8192, and the L2 holds 60 MB: a and b are read several times, as by torch.mm
# needs: wgmma, tma
# baseline: ch10/optimized_matmul_wgmma.cu
from shared_matmul import MATMUL

WORKLOAD = MATMUL

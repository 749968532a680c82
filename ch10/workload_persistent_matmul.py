"""Product of two bf16 matrices, c = a b^T, by a cluster a tile, or by as many clusters as the GPU runs at once.

Before, the baseline stored from registers, in half sectors, so that two ideas were measured as one: an H200 gave 1.65x at k = 1024 and
1.07x at 8192, where 1.2x and 1.03x were expected. A tile took that baseline 8 and 6 us beside its products, of which the store took 5.
Now both sides store by the TMA: of 4 panels of 600 cycles, as warp_specialized_pipeline counts them,
a store takes 2400 cycles, 1.6 us at 1.52 GHz. What stays of 8 and 6 us is 4.6 and 2.6: 3 and 1 us, or some 4600 and 1500 cycles, until two
SMs are free and the first operands there, and the store. The optimized side hides both under the next tile's products. So 1.4x and 1.03x
were expected.

An H200 gave 1.29x at k = 1024 and 1.03x at 8192 (2026-11-23). In cycles it is 1.39x and 1.05x: in the baseline, whose tensor cores rest
between tiles, the clock stood at 1.71 and 1.59 GHz, in the optimized side, whose are active in 99 % of cycles and not 94 (at 8192,
sm__pipe_tensor_cycles_active), at 1.59 and 1.56, as power allows. An SM has 16 tiles, and beside 1024 cycles a step one takes the baseline
8500 at either depth and the optimized side 1600 and 2300.

Back to back, for a second and more (--sustained, 2026-11-23), torch.mm took 1.024x [1.023, 1.025] of the optimized side's time at k = 8192,
1.060x [1.058, 1.062] at 1024, and 1.004x [1.002, 1.007] at 4096 cubed, at 690 W of 700.
"""

# traffic: a, b and c are 134 MB each at k = 8192, and the L2 holds 60 MB: a and b are read 4.6 times, about as often as by torch.mm
# needs: wgmma, tma, clusters
from shared_clustered_matmul import MATMUL, clustered

WORKLOAD = clustered(MATMUL.time_at)

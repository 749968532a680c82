"""Product of two bf16 matrices, c = a b^T, by a cluster a tile, or by as many clusters as the GPU runs at once.

Before, the baseline stored from registers, in half sectors, so that two ideas were measured as one: an H200 gave 1.65x at k = 1024 and
1.07x at 8192, where 1.2x and 1.03x were expected. A tile took that baseline 8 and 6 us beside its products, of which the store took 5.
Now both sides store by the TMA, and no H200 has run the pair since: of 4 panels of 600 cycles, as warp_specialized_pipeline counts them, a
store takes 2400 cycles, 1.6 us at 1.52 GHz. What stays of 8 and 6 us is 4.6 and 2.6: 3 and 1 us, or some 4600 and 1500 cycles, until two
SMs are free and the first operands there, and the store. The optimized side hides both under the next tile's products.
"""

# needs: wgmma, tma, clusters
from shared_clustered_matmul import MATMUL, clustered

WORKLOAD = clustered(MATMUL.time_at)

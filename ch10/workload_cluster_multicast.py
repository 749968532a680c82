"""Product of two bf16 matrices, c = a b^T, by blocks that load for themselves or for their cluster: see `--sweep "cluster=1,2,4,8"`.

Both sides walk over tiles. With a block or a cluster a tile, clusters came to 1.00x at k = 8192 and 0.91x at 1024 on an H200: a cluster
starts when two SMs are free, 1.8 us a tile later. That they lost nothing at 8192 is what sharing b saved: power, which limits this GPU's
clock. Here no tile waits for a start, so the saving is left. Time at the L2, 659 ns a step and then 440, is not counted: products take 675.
"""

# needs: wgmma, tma, clusters
# baseline: ch10/optimized_warp_specialized_pipeline.cu
from shared_clustered_matmul import MATMUL, clustered

WORKLOAD = clustered(MATMUL.time_at)

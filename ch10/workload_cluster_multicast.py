"""Product of two bf16 matrices, c = a b^T, by blocks that load for themselves or for their cluster: see `--sweep "cluster=1,2,4,8"`.

Both sides walk over tiles: with a cluster a tile, which starts when two SMs are free, an H200 gave 1.00x at k = 8192 and 0.91x at 1024.
What sharing b saves is power, which limits this GPU's clock while tensor cores are busy. With tiles stored from registers they were busy
for 95 % of the time at 8192 and 69 % at 1024, and it gave 1.014x and 1.000x; with stores by the TMA 98 % and 87 % are expected, so 1.01x
at both. Time at the L2, 659 ns a step and then 440, is not counted: products take 675.
"""

# needs: wgmma, tma, clusters
# baseline: ch10/optimized_warp_specialized_pipeline.cu
from shared_clustered_matmul import MATMUL, clustered

WORKLOAD = clustered(MATMUL.time_at)

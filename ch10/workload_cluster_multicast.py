"""Product of two bf16 matrices, c = a b^T, by blocks that load for themselves or for their cluster: see `--sweep "cluster=1,2,4,8"`."""

# needs: wgmma, tma, clusters
# baseline: ch10/optimized_warp_specialized_pipeline.cu
from shared_clustered_matmul import MATMUL, clustered

WORKLOAD = clustered(MATMUL.time_at)

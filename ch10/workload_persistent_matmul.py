"""Product of two bf16 matrices, c = a b^T, by a cluster a tile, or by as many clusters as the GPU runs at once."""

# needs: wgmma, tma, clusters
# baseline: ch10/optimized_cluster_multicast.cu
from shared_clustered_matmul import MATMUL, clustered

WORKLOAD = clustered(MATMUL.time_at)

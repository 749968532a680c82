"""Product of two bf16 matrices, c = a b^T, by a cluster a tile, or by as many clusters as the GPU runs at once.

At k = 1024 an H200 gave 1.65x, not the 1.2x that was expected: a tile takes the baseline 19 us, 8 more than its products and not 2.5. With
idle tensor cores a cluster waits until two SMs are free, for its first operands, and for a store of half sectors.
"""

# needs: wgmma, tma, clusters
from shared_clustered_matmul import MATMUL, clustered

WORKLOAD = clustered(MATMUL.time_at)

"""Product of two bf16 matrices, c = a b^T, from three loops to what a library does: every step of the ladder is one idea more.

Tiles are 128 x 256 from the first tensor-core step on. A K-step of a tile, 64 deep, is 1024 cycles of wgmma.

Predicted: each step over the step before it. A borrowed side's own file predicts over its own baseline, so its step is predicted here.
Ping-pong (`wgmma_triple_overlap`) hides the 2400 cycles that draining a tile takes, and is still slower. A warpgroup that drains needs a
tile of its own, and registers hold sums for 192 columns only. For those, shared memory takes 832 cycles per K-step and the products 768.
The last step divides what 66 clusters leave of 15.5 and 4.1 waves, and nothing of 3.9. Partial sums take as long as 8 K-steps.

Measured: RESULTS.md. The ladder gains far more than predicted with powers of two, and far less at the awkward shape.

Why, the baseline: it makes 7.1, 7.1 and 18.3 products per SM and cycle at the three shapes, where 14.2 were predicted. In the first two,
rows lie 16 and 8 KB apart. A 16-byte load is served eight lanes at a time, whose eight lines of b meet in the same banks of the L1:
4 x 8 passes for b and 4 for a, not 18. 256 products / 36 passes are 7.1 per cycle; the L1 is busy in 99.8 % of cycles (H200). `shared_tile`
has no such conflicts: 30 products per cycle, 32 predicted. `register_tile`: 78 FMAs, not 96. `wgmma`: 11 us per tile outside K-steps.

Why, the awkward shape: hypothesis from times alone, K-steps wait for the L2. Rows of 8144 bytes split cache lines: seven of eight rows of a
TMA box lie in two lines, and half of them in five sectors instead of four. `wgmma` takes 311 us where 5 waves instead of 4 explain 255 us.
`clustered`, which fetches a tile of b once for two blocks, takes 242 us. See workload_cluster_multicast.py. Why `walk` loses is not known.
"""

# predicts: baseline_double_buffered_pipeline = 0.167 x register_tile  (2.1 M FMAs per K-step in 3648 cycles instead of 96 per cycle)
# predicts: double_buffered_pipeline = 0.572 x baseline_double_buffered_pipeline  (2086 cycles per K-step instead of 3648)
# predicts: pipeline_3stage = 0.786 x double_buffered_pipeline  (1640 cycles per K-step instead of 2086)
# predicts: tma_2d_pipeline = 0.97 x pipeline_3stage  (1640 cycles per K-step instead of 1690)
# predicts: warp_specialized_pipeline = 0.962 x walk  (a tile is stored in 1.6 us by the TMA instead of 5 us)
# predicts@medium: warp_specialized_pipeline = 0.926 x walk  (the same store)
# predicts: wgmma_triple_overlap = 1.053 x warp_specialized_pipeline  (21 tiles of 192 columns per SM instead of 16 of 256)
# predicts@medium: wgmma_triple_overlap = 1.176 x warp_specialized_pipeline  (6 tiles per SM instead of 4)
# predicts@awkward: wgmma_triple_overlap = 0.943 x warp_specialized_pipeline  (6 tiles per SM instead of 5)
# predicts: persistent_matmul = 0.98 x clustered  (2400 cycles to store a tile are hidden under products)
# predicts@medium: persistent_matmul = 0.962 x clustered  (the same cycles)
# traffic: a, b and c are 134 MB each at k = 8192, and the L2 holds 60 MB: a and b are read several times, as by torch.mm
# needs: wgmma, tma, clusters
# reason: the baseline is the product as it is written down, on CUDA cores; tensor cores make 2048 products a cycle, CUDA cores 128
from shared_clustered_matmul import clustered

WORKLOAD = clustered(
    {
        "large": {"m": 8192, "n": 8192, "k": 8192},  # 15.5 waves of tiles of 256 x 256
        "medium": {"m": 4096, "n": 4096, "k": 4096},  # 3.9 waves
        "awkward": {"m": 4000, "n": 4104, "k": 4072},  # 4.1 waves, of which 16 tiles have 8 columns
    },
    ladder=(
        "shared_tile",
        "register_tile",
        "ch10/baseline_double_buffered_pipeline.cu",
        "ch10/optimized_double_buffered_pipeline.cu",
        "ch10/optimized_pipeline_3stage.cu",
        "ch10/optimized_tma_2d_pipeline.cu",
        "wgmma",
        "loader",
        "walk",
        "ch10/optimized_warp_specialized_pipeline.cu",
        "ch10/optimized_wgmma_triple_overlap.cu",
        "clustered",
        "ch10/optimized_persistent_matmul.cu",
    ),
    also_checked_at=({"m": 16904, "n": 136, "k": 1096},),  # 67 tiles for 66 clusters: the last step divides them by K-steps
)

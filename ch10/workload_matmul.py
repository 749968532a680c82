"""Product of two bf16 matrices, c = a b^T, from three loops to what a library does: every step of the ladder is one idea more.

What is expected of a step is over the step before, as the ladder's table has it; behind a file of another pair, which expects something
over its own baseline, it stands here. Tiles are 128 x 256, and a step of one, 64 deep, is 1024 cycles of products.

Ping-pong hides the draining of a tile, 2400 cycles, and is still slower: a warpgroup that drains has to have a tile to itself, whose sums
leave room for 192 columns, and for these shared memory takes 832 cycles a step where the products take 768. An SM makes 21 such tiles at
8192, 6 at 4096 and 6 at the awkward shape, where it made 16, 4 and 5 of 128 x 256: 0.95x, 0.85x and 1.06x. So the ladder goes on from the
step before it, and what the next one gains is that the tile is wide again: 1.05x, 1.18x and 0.94x. Over warp_specialized_pipeline it gains
1.00x, since at these tiles a step waits for shared memory and not for the L2. How many reads that spares the L2 nobody has counted: an H200
joins those of the same sectors anyway, but not multicast loads (workload_cluster_multicast.py).

The last step divides what 66 clusters leave of 15.5 waves at 8192, 3.9 at 4096 and 4.1 at the awkward shape: at best 1.03x, 1.03x and
1.21x. To pass partial sums on takes a tile 8 steps of time, so 1.03x, 1x, as 8 idle steps are not worth it, and 1.18x.

Expected 105x, and 220x at 8192, 204x at 4096 and 63.1x at the awkward shape on an H200 (2026-11-22). The last step makes 1559, 1446 and
1155 products an SM and cycle of 1.98 GHz, where 1536 were expected, and the baseline 7.1, 7.1 and 18.3, where 14 were. Its rows lie 16 and
8 KB apart in the first two shapes, powers of two, and 8144 bytes in the third. At a power of two the lines that a warp reads of b conflict
in the L1: its data stage is full in 99.8 % of cycles (l1tex__data_pipe_lsu_wavefronts, at 8192, 2026-11-23), and as the L2 is asked for 3 %
of what it can (lts__t_sectors), they do not drive each other out. With tiles in shared memory it is gone: shared_tile makes 30 products a
cycle at every shape, of 32 expected, and so gains 4.3x, 4.3x and 1.6x, not 2.2x.

Other steps missed by 5 % or more. register_tile gained 2.6x, 2.6x and 2.7x, not 3x, as it makes 78, 78 and 80 FMAs a cycle, not 96; so the
next step, first on tensor cores, gained 6.7x, 6.7x and 5.0x, not 6x. double_buffered_pipeline, 1.58x, 1.52x and 1.12x, and pipeline_3stage,
1.16x, 1.15x and 1.26x, have reasons in their workloads, but not for the awkward shape. wgmma gained 1.43x, 1.39x and 1.17x, not 1.5x: from
one depth to the other a step gains 1.49x, and 11 us a tile beside its steps stay. The rest is of the awkward shape: tma_2d_pipeline 1.24x,
not 1.03x, walk 0.93x, not 1x, ping-pong 0.96x, not 1.06x, clustered 1.39x, not 0.94x, the last step 1.09x, not 1.18x.

There it seems to be the L2 that a step waits for. Of a box's rows, 128 bytes each, seven in eight lie in two lines, and half in five
sectors, not four. wgmma took 311 us where 5 waves for 4 make 255 of the 204 at 4096; clustered, which fetches a tile of b once for two
blocks, 242. That is a hypothesis from times, without a counter; see workload_cluster_multicast.py. Why walk loses there is not known.
"""

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
        "ch10/baseline_double_buffered_pipeline.cu",  # expects: 6x, 96 FMAs a cycle; mma.sync makes 2.1 M in 3648, of which it runs in 1640
        "ch10/optimized_double_buffered_pipeline.cu",
        "ch10/optimized_pipeline_3stage.cu",
        "ch10/optimized_tma_2d_pipeline.cu",
        "wgmma",
        "loader",
        "walk",
        "ch10/optimized_warp_specialized_pipeline.cu",  # expects: 1.04x at 8192, 1.08x at 4096: a store takes 1.6 us, not 5, by the TMA
        "ch10/optimized_wgmma_triple_overlap.cu",  # expects: 0.95x at 8192, 0.85x at 4096, 1.06x at the awkward shape: a narrower tile
        "clustered",
        "ch10/optimized_persistent_matmul.cu",  # expects: 1.02x at 8192, 1.04x at 4096: 2400 cycles to store go on under products
    ),
)

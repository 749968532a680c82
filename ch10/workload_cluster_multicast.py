"""Product of two bf16 matrices, c = a b^T, by blocks that load for themselves or for their cluster: see `--sweep "clusterDim=1,2,4,8"`.

Multicast spares the L2, so the product is one that the L2 limits. With the ladder's tiles of 128 x 256 it does not: clusters came to
1.002x and 1.001x on an H200 at 8192 x 8192. Tiles of 128 x 128 take the L2 420 ns a step and shared memory 640 cycles, which are 408 ns
at 1.57 GHz: 1.03x at most. A step of tiles of 64 x 128 is 24 KB for 256 cycles of products, and a small c asks for them: 1024 x 1024 has
128, one for all SMs but four. Of 128 x 128 it has 64, which take 337 ns a step, at 1.9 GHz, on half of the SMs.

Expected of 128 tiles of 64 x 128 in 128 steps: the L2 gives 10.3 TB/s, as it gave the tiles of 128 x 192 of wgmma_triple_overlap, so a
step takes 305 ns, or 204 where two blocks share b. Then shared memory is slower, and so is an SM's port to the L2, which still takes 24 KB
at 64 bytes a cycle: 384 cycles for either, 226 ns at 1.7 GHz. (An H200 held 1.66 GHz with tensor cores 78 % busy, 1.76 with 53 %; these
are for 67 %.) To start, to fill the ring and to store a tile take 4 us: 43 us in all, and 33. Clusters of 4 and of 8 spare the L2 more and
gain no more. Meanwhile DRAM is read in 8 us, or with few rows in 17.

Refuted on an H200 (2026-11-22): lts__t_sectors.sum of the optimized side is not below 0.8 of the baseline's, so the pair is UNPROVEN. What
it is was not kept. That counter also has what one half of the L2 asks of the other (srcunit_ltcfabric); srcunit_tex is what the SMs ask.
"""

# needs: wgmma, tma, clusters
from shared_clustered_matmul import clustered

WORKLOAD = clustered(
    {
        "square": {"m": 1024, "n": 1024, "k": 8192},
        "few rows": {"m": 256, "n": 4096, "k": 8192},  # 256 tokens times half of a matrix of 8192 x 8192
    }
)

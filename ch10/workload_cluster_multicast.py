"""Product of two bf16 matrices, c = a b^T, by blocks that load for themselves or for their cluster: see `--sweep "clusterDim=1,2,4,8"`.

A step of a tile of 64 x 128 is 8 KB of a and 16 KB of b. An SM's port to the L2 takes 384 cycles for them, at 64 bytes each, whoever
asked; shared memory takes as long, the products 256. So all that multicast can spare is reads of the L2: a cluster, whose blocks stand one
below the other, asks for b once. By arithmetic the L2 reads 0.67, 0.50 and 0.42 of what SMs get, where clusterDim is 2, 4 and 8.

But an H200 already spares some of these reads without being told. Its L2 request coalescer, the unit `lrc` in ncu's guide, carries
multicast out, and also joins reads of the same sectors that SMs ask for at about the same time. Sectors of 32 bytes that the SMs got, and
that the L2 read for them (lts__t_sectors_srcunit_tex.sum), in millions, counted on an H200 on 2026-11-22:

    c, of k = 8192    got    baseline    clusterDim 1      2      4      8
    1024 x 1024     12.58        7.17           12.56   7.76   6.20   5.61
    512 x 1920      11.80        6.76                   7.25   5.18   4.57
    1024 x 1920     23.59       15.38                  13.93  11.62   9.75
    2048 x 1920     47.19       32.35                  28.82  23.20  20.90

The coalescer spares the baseline 31 to 43 % of its reads. It does not join multicast loads: where each goes to its own block alone the L2
reads all, and 1024 x 1024 takes 1.55x as long. Clusters of 2 spare about what the coalescer does anyway, and lose. With clusters of 4 the
L2 reads 0.49, 0.44, 0.49 and 0.49 of what SMs get, and 0.86, 0.77, 0.76 and 0.72 of what it reads for the baseline.

A cluster lies in one GPC, and clusters of 4 or 8 filled only 120 of that H200's 132 SMs. Where that makes a wave more they lose: clusters
of 4 came to 0.57x at 1024 x 1024, two waves for one, and to 0.94x at 4096 x 3840, 16 for 15. With as many waves they came to 0.95x in one,
512 x 1920, to 1.03x in two, 1024 x 1920, and in four to 1.01x, 2048 x 1920, and 1.04x, the timed c: 118.6 us and 113.5, and 120.0 and 110.4
where the L2 was not flushed. These are times by events; 1.05x was written down after them.

The reason: four waves of 128 steps are 196 608 cycles of a port, 112 us at 1.75 GHz. The optimized side is at that limit, and the baseline
is only a few percent away. So on an H200 multicast makes certain what the coalescer does by chance. It is worth a few percent, and only
with clusters of 4 or more.

At first 1.3x was expected, of clusters of 2 at 1024 x 1024 and an L2 that reads for each SM alone. That was refuted: lts__t_sectors.sum was
1.13 of the baseline's, where less than 0.8 was claimed, and 33.6 us became 35.5.
"""

# needs: wgmma, tma, clusters
from shared_clustered_matmul import clustered

WORKLOAD = clustered({"four waves": {"m": 1024, "n": 3840, "k": 8192}}, clusterDim=4)

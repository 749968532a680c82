"""Product of two bf16 matrices, c = a b^T, by blocks that load for themselves or for their cluster: see `--sweep "clusterDim=1,2,4,8"`.

A step of a tile of 64 x 128 is 8 KB of a and 16 KB of b. A cluster, whose blocks stand one below the other, asks for b once. That gains
much where rows split lines of the L2, else a few percent, and only with clusters of 4 or more. By arithmetic the L2 then reads 0.67, 0.50
and 0.42 of what SMs get, where clusterDim is 2, 4 and 8. But an SM's port to the L2 takes 384 cycles for a step, at 64 bytes each, whoever
asked; shared memory takes as long, the products 256.

SPLIT LINES. Rows of 16 368 bytes begin inside a line of 128 bytes 7 times in 8. So a tile's row of 128 lies in 1.875 lines and 4.5 sectors
of 32 bytes on average, not in 1 and 4. What a block asks for in a step, lines or parts of them, what it took 1024 x 3840 x 8184 on an H200
(2026-11-23, the device's clock, cold), and what that is a step at the clock that the side's stamps have:

                requests       us    GHz   cycles a step
    baseline         360      278   1.78             965
    clusterDim 1     360      243   1.76             836    1.144x [1.141, 1.146]
    clusterDim 2     240      175   1.72             590    1.582x [1.579, 1.586]
    clusterDim 4     180      148   1.68             485    1.872x [1.868, 1.877]
    clusterDim 8     150      131   1.66             422    2.129x [2.124, 2.134]
    torch.mm                 90.4   1.61                    whose tile is larger

These times came first, when the pair had whole lines only, and 1.87x was written down after them. Those of clusters lie within 2 % of 126
cycles + 1.97 a request. A whole line takes a port of 64 bytes two, so a part of a line costs as much as a line. It is a fit of four points,
no counter, and does not say where: not in the SM's own port, which all 360 parts pass, whoever asked. There 720 cycles would be more than
clusters took; their bytes take 432.

Predicted then, with no counter read at this k: the coalescer, see below, joins next to nothing of split lines, as clusterDim 1 is faster
than the baseline here and slower with whole lines. Then the L2 reads 53.0 million sectors for the baseline, all that SMs get, and 0.50 of
them for clusters of 4; less than 0.7 is claimed. Joined as whole lines are, it would be 0.78. Counted since: 52.6 million and 28.6, 0.54.
Why the baseline takes longer than clusterDim 1 is open.

Who has such rows and can pad them should: with whole lines the baseline takes 118.6 us. Otherwise clusters help: the ladder's `clustered`
gained 1.39x over the step before it where rows are of 8144 bytes (workload_matmul.py).

WHOLE LINES: 192 for a block that shares none. Here an H200 spares reads without being told. Its L2 request coalescer, the unit `lrc` in
ncu's guide, carries multicast out, and also joins reads of the same sectors that SMs ask for at about the same time. Sectors that SMs got,
and that the L2 read for them (lts__t_sectors_srcunit_tex.sum), in millions, counted on an H200 on 2026-11-22:

    c, of k = 8192    got    baseline    clusterDim 1      2      4      8
    1024 x 1024     12.58        7.17           12.56   7.76   6.20   5.61
    512 x 1920      11.80        6.76                   7.25   5.18   4.57
    1024 x 1920     23.59       15.38                  13.93  11.62   9.75
    2048 x 1920     47.19       32.35                  28.82  23.20  20.90

The coalescer spares the baseline 31 to 43 % of its reads, about as many as clusters of 2. It does not join multicast loads: with clusterDim
1 the L2 reads all. At the timed c that was 47.47 million, in 183 us of gpu__time_duration, and 29.49 in 117 for the baseline (2026-11-23).
With clusters of 4 it reads 0.49, 0.44, 0.49 and 0.49 of what SMs get, so at the timed c some 23.1 million, 0.78 of the baseline.

Clusters of 4 or 8 filled only 120 of that H200's 132 SMs, as a cluster lies in one GPC. Where that makes a wave more they lose: clusters of
4 came to 0.57x at 1024 x 1024, two waves for one. With as many waves they came to 0.95x, 1.03x and 1.01x at the other c, and to 1.04x at
the timed one, 118.6 us and 113.5 by events, as was expected. Timed by the device's clock it is 1.035x [1.030, 1.040], and next to no cycle
is spared: a step takes 363 cycles and 360, at 1.57 and 1.61 GHz. Both sides are at a port's limit, which seems to be some 68 bytes a cycle
of an SM, whose clock it need not share. The gain is the clock: it seems that an L2 that reads less draws less power.

At first 1.3x was expected, of clusters of 2 at 1024 x 1024 and an L2 that reads for each SM alone. That was refuted: lts__t_sectors.sum was
1.13 of the baseline's, where less than 0.8 was claimed, and 33.6 us became 35.5.
"""

# needs: wgmma, tma, clusters
from shared_clustered_matmul import clustered

WORKLOAD = clustered({"split lines": {"m": 1024, "n": 3840, "k": 8184}, "whole lines": {"m": 1024, "n": 3840, "k": 8192}}, clusterDim=4)

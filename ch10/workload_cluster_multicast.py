"""Product of two bf16 matrices, c = a b^T, by blocks that load for themselves or for their cluster: see `--sweep "clusterDim=1,2,4,8"`.

A K-step of a tile of 64 x 128 loads 8 KB of a and 16 KB of b. The blocks of a cluster make tiles below each other, so they share tiles of b
and ask the L2 once. An SM's port to the L2 (64 bytes per cycle) needs 384 cycles for a step whoever asked, and the products need 256.
With whole lines a step was measured at 363 cycles. So that rate, or the clock of the time stamps, is off by a twentieth.

Split lines: rows of 16 368 bytes begin inside a 128-byte line 7 times in 8. A tile's row of 128 bytes then lies in 1.875 lines and 4.5
sectors on average, not in 1 and 4. Predicted: the two sides' times below, which an H200 had taken before the pair had this shape
(1024 x 3840 x 8184, device clock, cold caches; cycles at the clock of each side's time stamps):

    side             requests per K-step    time (us)    clock (GHz)    cycles per K-step
    baseline                         360          278           1.78                  965
    clusterDim 1                     360          243           1.76                  836
    clusterDim 2                     240          175           1.72                  590
    clusterDim 4                     180          148           1.68                  485
    clusterDim 8                     150          131           1.66                  422

The times with clusters lie within 2 % of 126 cycles + 1.97 cycles per request. So a partial line costs as much as a whole line. The fit has
four points and names no unit. The SM's own port is not the limit: it passes all 360 parts whoever asked, which would take 720 cycles.
Why the baseline is slower than clusterDim 1 is open. Both load all of b for each block, so this part of the gain is not sharing.

Predicted too: clusters of 4 halve the sectors that the L2 reads (claim: below 0.7). Measured: 52.6 million sectors become 28.6 million.
Rows that can be padded should be: with whole lines the baseline alone takes 118.6 us.

Whole lines: the H200 already joins reads of the same sectors that SMs ask for at about the same time (its L2 request coalescer, `lrc` in
Nsight Compute). It does not join multicast loads. Million sectors that SMs got, and that the L2 read for them
(lts__t_sectors_srcunit_tex.sum, H200), at k = 8192:

    c              got    baseline    clusterDim 1        2        4        8
    1024 x 1024    12.58      7.17           12.56     7.76     6.20     5.61
    512 x 1920     11.80      6.76      not counted    7.25     5.18     4.57
    1024 x 1920    23.59     15.38      not counted   13.93    11.62     9.75
    2048 x 1920    47.19     32.35      not counted   28.82    23.20    20.90

The coalescer spares the baseline 31 to 43 % of its reads, about as many as clusters of 2. So only clusters of 4 or more gain anything.
Clusters of 4 or 8 filled only 120 of the 132 SMs, because a cluster lies in one GPC. Where that costs one wave more, they lose.
At the timed shape a step takes 363 and 360 cycles, at 1.57 and 1.61 GHz: the gain is the clock. Hypothesis: an L2 that reads less draws
less power.

A first prediction was refuted: 1.3x for clusters of 2 at 1024 x 1024, from an L2 that reads for each SM alone.
"""

# needs: wgmma, tma, clusters
from shared_clustered_matmul import clustered

WORKLOAD = clustered({"split lines": {"m": 1024, "n": 3840, "k": 8184}, "whole lines": {"m": 1024, "n": 3840, "k": 8192}}, clusterDim=4)

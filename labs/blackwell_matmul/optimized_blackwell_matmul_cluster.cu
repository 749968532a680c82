// Optimized: two blocks of a cluster share one tile of b.
// predicts: baseline 0.290 ms = 5 * 64 * 49152 * 1.125 * sm_count / l2 + 5 * 1.6e-6 on h100    (5 waves of 64 steps, 48 KB a step)
// predicts: optimized 0.231 ms = 5 * sm_count * 2 * 128 * 256 * k / bf16 + 5 * 1.6e-6 on h100    (32 KB a step: products take longer)
// proves: tma_multicast
// proves: cluster_arrive
// proves: cluster_wait
// has: wgmma_f16_bf16
// has: grid <= 132
// has: spills == 0
#include "ch10/optimized_matmul_clustered.cu"

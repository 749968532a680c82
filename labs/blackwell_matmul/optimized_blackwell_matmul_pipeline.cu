// Optimized: the TMA stores tiles; one warpgroup loads, two multiply.
// predicts: baseline 0.236 ms = 2 * m * n * k / bf16_mma_sync * 528 / 512 + 16e-6 on h100    (4 waves, 4 us each to fill and store)
// predicts: optimized 0.186 ms = 2 * m * n * k / bf16 * 528 / 512 + 4 * 1.6e-6 on h100    (wgmma's rate; loads run ahead of tiles)
// proves: wgmma_f16_bf16
// proves: setmaxnreg_inc
// proves: setmaxnreg_dec
// proves: tma_store
// proves: grid <= 132
// has: tma_load_tile
// has: spills == 0
#include "ch10/optimized_warp_specialized_pipeline.cu"

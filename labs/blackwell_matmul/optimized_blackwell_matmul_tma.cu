// Optimized: the TMA copies tiles, and barriers count the bytes.
// predicts: baseline 0.243 ms = 2 * m * n * k / bf16_mma_sync * 528 / 512 + 4 * 64 * 50 / sm_clock + 16e-6 on h100    (4 waves)
// predicts: optimized 0.236 ms = 2 * m * n * k / bf16_mma_sync * 528 / 512 + 16e-6 on h100    (no block-wide barrier in a step)
// proves: tma_load_tile
// proves: mbarrier_expect_tx
// proves: fewer bar_sync
// proves: not cp_async_any
// has: mma_sync_f16_bf16
// has: spills == 0
#include "ch10/optimized_tma_2d_pipeline.cu"

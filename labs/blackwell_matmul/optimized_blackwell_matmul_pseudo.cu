// Optimized: threads copy tiles ahead into three stages.
// predicts: baseline 0.488 ms = 4 * 64 * 3648 / sm_clock + 16e-6 on h100    (4 waves of 64 steps, 3648 cycles each)
// predicts: optimized 0.243 ms = 2 * m * n * k / bf16_mma_sync * 528 / 512 + 4 * 64 * 50 / sm_clock + 16e-6 on h100    (4 waves)
// proves: cp_async_16
// proves: cp_async_wait
// has: mma_sync_f16_bf16
// has: ldmatrix
// has: spills == 0
#include "ch10/optimized_pipeline_3stage.cu"

// Optimized: threads copy tiles ahead into three stages.
// predicts: baseline 37.0 ms = m * n * k * 36 / 256 / (sm_count * sm_clock) on h100    (36 L1 cycles for 256 products of a warp)
// predicts: optimized 0.243 ms = 2 * m * n * k / bf16_mma_sync * 528 / 512 + 4 * 64 * 50 / sm_clock + 16e-6 on h100    (4 waves)
// proves: cp_async_16
// proves: cp_async_wait
// proves: mma_sync_f16_bf16
// proves: ldmatrix
// has: spills == 0
#include "ch10/optimized_pipeline_3stage.cu"

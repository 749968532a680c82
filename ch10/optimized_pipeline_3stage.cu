// Optimized: three stages: two steps in flight while one multiplies.
// predicts: optimized = 0.786 x baseline  (1640 cycles of products per K-step; 190 to issue copies and 256 for fragments are hidden)
// predicts@shallow: optimized = 0.786 x baseline  (the same cycles)
// proves: shared_memory > baseline
// proves: /\bDEPBAR\.LE SB0, 0x1\b/
// has: cp_async_16
// has: cp_async_wait
// has: mma_sync_f16_bf16
// has: ldmatrix
// has: spills == 0
#include "common/cuda/launch.cuh"
#include "shared_async_tile.cuh"

constexpr int STAGES = 3;
constexpr int SHARED_BYTES = STAGES * sizeof(Stage);

__global__ void __launch_bounds__(THREADS, 1) multiply(Product x) {
    extern __shared__ __align__(SWIZZLE_PERIOD) unsigned char bytes[];
    auto stages = reinterpret_cast<Stage*>(bytes);
    const Tiles<TILE_N> tiles(x.m, x.n);
    const int row = tiles.row(blockIdx.x), column = tiles.column(blockIdx.x), steps = ceil_div(x.k, TILE_K);
    Sums sums;
    Fragments turns[2];
    for (int step = 0; step < STAGES - 1; step++) {
        copy(stages[step], x, row, column, step * TILE_K);
        __pipeline_commit();
    }
    __pipeline_wait_prior(STAGES - 2);
    __syncthreads();
    turns[0].load(stages[0], 0);
    for (int step = 0; step < steps; step++) {
        const int now = step % STAGES, next = (step + 1) % STAGES, ahead = step + STAGES - 1;
#pragma unroll
        for (int part = 0; part < PARTS; part++) {
            copy_part(stages[ahead % STAGES], x, row, column, ahead * TILE_K, part);
            if (part + 1 == PARTS) {
                __pipeline_commit();
                __pipeline_wait_prior(STAGES - 2);  // the next K-step has arrived; the one after it may be in flight
                __syncthreads();                    // for all threads, and all have read the current stage
            }
            sums.add(turns[part % 2], turns[(part + 1) % 2], stages[part + 1 < PARTS ? now : next], (part + 1) % PARTS);
        }
    }
    __pipeline_wait_prior(0);
    __syncthreads();
    sums.store(stages, x, row, column);
}

PREPARE(void** state) {
    *state = nullptr;
    return cudaFuncSetAttribute(multiply, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
}

LAUNCH(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k, cudaStream_t stream) {
    const Product product{a, b, c, m, n, k};
    if (cudaError_t error = product.check()) return error;
    multiply<<<Tiles<TILE_N>(m, n).count(), THREADS, SHARED_BYTES, stream>>>(product);
    return cudaGetLastError();
}

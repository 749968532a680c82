// One warp loads tiles, four compute and store them: a double-buffered pipeline between the two roles, two blocks per SM.
#pragma once
#include "ch11/shared_roles.cuh"
#include "common/cuda/aligned.cuh"

constexpr int TILE = 10240, TILES = 4;                      // floats per tile, tiles per block
constexpr int STAGE_BYTES = STAGES * TILE * sizeof(float);  // 80 KB of shared memory: a Hopper's SM holds two blocks

// y = T(x), a Chebyshev polynomial; points is a multiple of 4.
__global__ void __launch_bounds__(ROLES)
    warp_specialized_kernel_pipeline_multistream(const float* __restrict__ x, float* __restrict__ y, int points, int degree) {
    extern __shared__ __align__(16) float loaded[];
    __shared__ PipelineState loading;
    const Warp warp = cooperative_groups::tiled_partition<WARP>(cooperative_groups::this_thread_block());
    const int begin = blockIdx.x * TILE * TILES, end = min(points, begin + TILE * TILES);
    Pipeline pipeline = cuda::make_pipeline(cooperative_groups::this_thread_block(), &loading, WARP);

    for (int at = begin, stage = 0; at < end; at += TILE, stage ^= 1) {
        float* tile = loaded + stage * TILE;
        const int count = min(TILE, end - at);
        if (warp.meta_group_rank() == 0) {
            load_stage(warp, pipeline, tile, x + at, count);
        } else {
            pipeline.consumer_wait();
            for (int i = threadIdx.x - WARP; i < count; i += COMPUTE) y[at + i] = polynomial<1>(tile[i], degree);
            pipeline.consumer_release();
        }
    }
}

inline cudaError_t allow_shared_memory() {
    return cudaFuncSetAttribute(warp_specialized_kernel_pipeline_multistream, cudaFuncAttributeMaxDynamicSharedMemorySize, STAGE_BYTES);
}

// One micro-batch on `stream`.
inline cudaError_t launch_batch(const float* x, float* y, int points, int degree, cudaStream_t stream) {
    if (points % 4) return cudaErrorInvalidValue;  // batches of whole 16 bytes
    if (!aligned(16, x, y)) return cudaErrorMisalignedAddress;
    const int blocks = (points + TILE * TILES - 1) / (TILE * TILES);
    warp_specialized_kernel_pipeline_multistream<<<blocks, ROLES, STAGE_BYTES, stream>>>(x, y, points, degree);
    return cudaGetLastError();
}

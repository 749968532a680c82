// One warp loads tiles, four compute them, one stores them: a double-buffered pipeline from each role to the next.
#pragma once
#include "ch11/shared_roles.cuh"
#include "common/cuda/aligned.cuh"

constexpr int TILE = 1024, TILES = 16;  // floats per tile, tiles per block

// y = T(x), a Chebyshev polynomial; points is a multiple of 4.
__global__ void __launch_bounds__(WARP + COMPUTE + WARP)
    warp_specialized_kernel_two_pipelines_multistream(const float* __restrict__ x, float* __restrict__ y, int points, int degree) {
    __shared__ alignas(16) float loaded[STAGES][TILE], computed[STAGES][TILE];
    __shared__ PipelineState loading, storing;
    const Warp warp = cooperative_groups::tiled_partition<WARP>(cooperative_groups::this_thread_block());
    const Members loaders{0, 1}, storers{WARP, 2};
    const int begin = blockIdx.x * TILE * TILES, end = min(points, begin + TILE * TILES);

    if (warp.meta_group_rank() == 0) {
        Pipeline pipeline = cuda::make_pipeline(loaders, &loading, WARP);
        for (int at = begin, stage = 0; at < end; at += TILE, stage ^= 1) {
            load_stage(warp, pipeline, loaded[stage], x + at, min(TILE, end - at));
        }
    } else if (warp.meta_group_rank() <= COMPUTE / WARP) {
        Pipeline from = cuda::make_pipeline(loaders, &loading, WARP), to = cuda::make_pipeline(storers, &storing, COMPUTE);
        for (int at = begin, stage = 0; at < end; at += TILE, stage ^= 1) {
            from.consumer_wait();
            to.producer_acquire();
            for (int i = threadIdx.x - WARP; i < min(TILE, end - at); i += COMPUTE) {
                computed[stage][i] = polynomial<1>(loaded[stage][i], degree);
            }
            from.consumer_release();
            to.producer_commit();
        }
    } else {
        Pipeline pipeline = cuda::make_pipeline(storers, &storing, COMPUTE);
        for (int at = begin, stage = 0; at < end; at += TILE, stage ^= 1) {
            pipeline.consumer_wait();
            for (int i = 4 * warp.thread_rank(); i < min(TILE, end - at); i += 4 * WARP) {
                *reinterpret_cast<float4*>(y + at + i) = *reinterpret_cast<float4*>(computed[stage] + i);
            }
            pipeline.consumer_release();
        }
    }
}

// One micro-batch on `stream`.
inline cudaError_t launch_batch(const float* x, float* y, int points, int degree, cudaStream_t stream) {
    if (points % 4) return cudaErrorInvalidValue;  // batches of whole 16 bytes
    if (!aligned(16, x, y)) return cudaErrorMisalignedAddress;
    const int blocks = (points + TILE * TILES - 1) / (TILE * TILES);
    warp_specialized_kernel_two_pipelines_multistream<<<blocks, WARP + COMPUTE + WARP, 0, stream>>>(x, y, points, degree);
    return cudaGetLastError();
}

// Optimized: cp.async loads the next tile while one is smoothed.
// predicts: baseline 0.112 ms = (1000 + 730) * cols / 64 / sm_clock on h200  (cycles per tile: latency + instructions)
// predicts: optimized 0.0743 ms = (150 + 1000) * cols / 64 / sm_clock on h200  (cycles per tile: 150 to issue; 460 hide in the latency)
// proves: cp_async_16
// proves: cp_async_commit
// proves: cp_async_wait
// proves: counter smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio < 0.9 x baseline
#include <cuda_pipeline.h>

#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"

constexpr int ROWS = 32;          // rows per block, one per lane: this pair keeps a row's steps in order (see the workload)
constexpr int STEPS = 64;         // floats per row of a tile: 256 bytes, which 16 lanes load and store together
constexpr int PITCH = STEPS + 4;  // floats from row to row: 17 groups of 16 bytes, so a column of groups spans all 32 banks

__device__ float4* group(float (*tile)[PITCH], int k) {
    return reinterpret_cast<float4*>(&tile[2 * k + threadIdx.x / 16][threadIdx.x % 16 * 4]);
}

// Smooths one lane's row of a tile in place: a chain of 64 dependent FMAs.
__device__ float smooth_row(float* row, float last) {
#pragma unroll
    for (int t = 0; t < STEPS; t += 4) {
        float4 v = *reinterpret_cast<float4*>(row + t);
        v.x = last = fmaf(0.9375f, last, 0.0625f * v.x);
        v.y = last = fmaf(0.9375f, last, 0.0625f * v.y);
        v.z = last = fmaf(0.9375f, last, 0.0625f * v.z);
        v.w = last = fmaf(0.9375f, last, 0.0625f * v.w);
        *reinterpret_cast<float4*>(row + t) = v;
    }
    return last;
}

// Requests the tile that begins at column `begin`. cp.async copies to shared memory without registers, so no lane waits here.
// Beyond the matrix the last entries are read again and not stored.
__device__ void prefetch(float (*tile)[PITCH], const float* x, int begin, int rows, int cols) {
    const int first = blockIdx.x * ROWS + threadIdx.x / 16, c = begin + threadIdx.x % 16 * 4;
#pragma unroll
    for (int k = 0; k < ROWS / 2; k++) {
        __pipeline_memcpy_async(group(tile, k), x + size_t(min(first + 2 * k, rows - 1)) * cols + min(c, cols - 4), 16);
    }
    __pipeline_commit();
}

// At least one block per SM: a lane may have 255 registers.
__global__ void __launch_bounds__(32, 1) smooth(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    __shared__ alignas(16) float tiles[2][ROWS][PITCH];
    const int first = blockIdx.x * ROWS + threadIdx.x / 16;
    float last = 0;
    prefetch(tiles[0], x, 0, rows, cols);
    for (int begin = 0; begin < cols; begin += STEPS) {
        const int c = begin + threadIdx.x % 16 * 4;
        auto tile = tiles[begin / STEPS % 2], next = tiles[(begin / STEPS + 1) % 2];
        __pipeline_wait_prior(0);
        __syncwarp();  // all lanes' copies have arrived, and all lanes have stored the other tile
        if (begin + STEPS < cols) prefetch(next, x, begin + STEPS, rows, cols);
        last = smooth_row(tile[threadIdx.x], last);
        __syncwarp();
#pragma unroll
        for (int k = 0; k < ROWS / 2; k++) {
            const int r = first + 2 * k;
            if (r < rows && c < cols) *reinterpret_cast<float4*>(y + size_t(r) * cols + c) = *group(tile, k);
        }
    }
}

LAUNCH(const float* x, float* y, int rows, int cols, cudaStream_t stream) {
    if (cols % 4) return cudaErrorInvalidValue;  // rows of whole 16 bytes
    if (!aligned(16, x, y)) return cudaErrorMisalignedAddress;
    smooth<<<ceil_div(rows, ROWS), 32, 0, stream>>>(x, y, rows, cols);
    return cudaGetLastError();
}

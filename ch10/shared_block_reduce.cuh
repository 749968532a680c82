// Values of all threads of a block, combined into one that every thread gets: within warps by shuffles, across them in shared memory.
#pragma once
#include <cfloat>

#include "common/cuda/launch.cuh"

constexpr int THREADS = 512;              // per block
constexpr int BLOCKS = 8;                 // blocks that share a row; neighbours in the grid
constexpr int EACH = 32;                  // loads that a thread issues before it uses one: 64 KB in flight per block
constexpr int STRIDE = BLOCKS * THREADS;  // floats from one of these loads to the next

struct Sum {
    __device__ static float of(float a, float b) { return a + b; }
};
struct Max {
    __device__ static float of(float a, float b) { return fmaxf(a, b); }
};

// Combines each group of LANES neighbouring lanes; all of them get the result.
template <typename Combined, int LANES = 32>
__device__ float warp_reduce(float value) {
#pragma unroll
    for (int other = LANES / 2; other > 0; other /= 2) value = Combined::of(value, __shfl_xor_sync(~0u, value, other));
    return value;
}

// At most one call per kernel and Combined: `of_warp` is not guarded against a second call while a slow warp still reads it.
template <typename Combined>
__device__ float block_reduce(float value) {
    constexpr int WARPS = THREADS / 32;
    __shared__ float of_warp[WARPS];
    value = warp_reduce<Combined>(value);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
    __syncthreads();
    return warp_reduce<Combined, WARPS>(of_warp[threadIdx.x % WARPS]);
}

// The part of a row that block `rank` of eight adds up: every eighth run of 512 values.
__device__ inline float sum_of_share(const float* row, int cols, int rank) {
    float sum = 0;
    for (int first = rank * THREADS + threadIdx.x; first < cols; first += EACH * STRIDE) {
        float value[EACH];
#pragma unroll
        for (int i = 0; i < EACH; i++) value[i] = i * STRIDE < cols - first ? row[first + i * STRIDE] : 0;
#pragma unroll
        for (int i = 0; i < EACH; i++) sum += value[i];
    }
    return block_reduce<Sum>(sum);
}

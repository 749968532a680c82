// Values of all threads of a block, combined into one that every thread gets: within warps by shuffles, across them in shared memory.
#pragma once
#include <cfloat>

#include "common/cuda/launch.cuh"

constexpr int THREADS = 512;              // of a block
constexpr int BLOCKS = 8;                 // that share a row, neighbours in the grid
constexpr int EACH = 32;                  // values of a row that a thread asks for before it uses one: 64 KB a block are under way
constexpr int STRIDE = BLOCKS * THREADS;  // from one of them to the next

struct Sum {
    __device__ static float of(float a, float b) { return a + b; }
};
struct Max {
    __device__ static float of(float a, float b) { return fmaxf(a, b); }
};

// Over each LANES neighbours of a warp.
template <typename Combined, int LANES = 32>
__device__ float warp_reduce(float value) {
#pragma unroll
    for (int other = LANES / 2; other > 0; other /= 2) value = Combined::of(value, __shfl_xor_sync(~0u, value, other));
    return value;
}

// Once a kernel for each way to combine: the warps do not wait for each other before they leave.
template <typename Combined>
__device__ float block_reduce(float value) {
    constexpr int WARPS = THREADS / 32;
    __shared__ float of_warp[WARPS];
    value = warp_reduce<Combined>(value);
    if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = value;
    __syncthreads();
    return warp_reduce<Combined, WARPS>(of_warp[threadIdx.x % WARPS]);
}

// What block `rank` of a row's eight sums: every eighth stretch of 512 values.
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

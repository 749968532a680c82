// The sum over a grid in one launch: each block writes its sum, and the last block to finish adds all sums, always in the same order.
#pragma once
#include "common/cuda/launch.cuh"

// Number of finished blocks. The last one resets it to 0 for the next launch, so two launches must not overlap.
__device__ unsigned blocks_done;

// The sum over the block, in all of its threads.
template <int THREADS>
__device__ float sum_over_block(float value) {
    __shared__ float sums[THREADS / 32];
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_down_sync(~0u, value, distance);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
    __syncthreads();
    value = 0;
    for (float warp : sums) value += warp;
    return value;
}

// y[0] = the sum of every thread's `value`; `partial` has an element per block.
template <int THREADS>
__device__ void sum_over_grid(float value, float* partial, float* y) {
    __shared__ bool last;
    value = sum_over_block<THREADS>(value);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = value;
        __threadfence();  // the block's sum is visible before the block is counted
        last = atomicInc(&blocks_done, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    value = 0;
    for (int block = threadIdx.x; block < gridDim.x; block += THREADS) value += __ldcg(partial + block);
    value = sum_over_block<THREADS>(value);
    if (threadIdx.x == 0) y[0] = value;
}

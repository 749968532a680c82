// The sum of a row: one block a row, 256 threads that read neighbouring floats.
#pragma once

constexpr int THREADS = 256;

__global__ void sum_rows(const float* __restrict__ x, float* __restrict__ y, int cols) {
    __shared__ float partial[THREADS / 32];
    const float* row = x + size_t(blockIdx.x) * cols;
    float sum = 0;
    for (int c = threadIdx.x; c < cols; c += THREADS) sum += row[c];
    for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_down_sync(0xffffffff, sum, lanes);
    if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    sum = threadIdx.x < THREADS / 32 ? partial[threadIdx.x] : 0;
    for (int lanes = 16; lanes > 0; lanes /= 2) sum += __shfl_down_sync(0xffffffff, sum, lanes);
    if (threadIdx.x == 0) y[blockIdx.x] = sum;
}

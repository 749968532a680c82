// Baseline: a thread sums a row of 32 floats in shared memory: all 32 lanes are in one bank, which takes 32 turns for each access.
#include "common/cuda/launch.cuh"

constexpr int COLS = 32;
constexpr int ROWS = 128;  // of a block, a thread for each

__global__ void sum_rows(const float* __restrict__ x, float* __restrict__ y, int rows) {
    __shared__ float tile[ROWS][COLS];
    const size_t begin = size_t(blockIdx.x) * ROWS * COLS, end = size_t(rows) * COLS;
    // Global memory is read along rows: 4 sectors a request, and 1 turn of shared memory to put them there.
#pragma unroll
    for (int k = 0; k < COLS; k++) {
        size_t i = begin + k * ROWS + threadIdx.x;
        tile[(k * ROWS + threadIdx.x) / COLS][threadIdx.x % COLS] = i < end ? x[i] : 0;
    }
    __syncthreads();
    // Of each of a row's floats a load and a store, 64 requests a warp, 32 turns each.
    float sum = 0;
#pragma unroll
    for (int c = 0; c < COLS; c++) tile[threadIdx.x][c] = sum += tile[threadIdx.x][c];
    __syncthreads();
#pragma unroll
    for (int k = 0; k < COLS; k++) {
        size_t i = begin + k * ROWS + threadIdx.x;
        if (i < end) y[i] = tile[(k * ROWS + threadIdx.x) / COLS][threadIdx.x % COLS];
    }
}

LAUNCH(const float* x, float* y, int rows, cudaStream_t stream) {
    sum_rows<<<ceil_div(rows, ROWS), ROWS, 0, stream>>>(x, y, rows);
    return cudaGetLastError();
}

// Baseline: each thread sums a row of 32 floats in shared memory: all 32 lanes hit one bank, 32 wavefronts per access.
#include "common/cuda/launch.cuh"

constexpr int COLS = 32;
constexpr int ROWS = 128;  // rows per block, one per thread

__global__ void sum_rows(const float* __restrict__ x, float* __restrict__ y, int rows) {
    __shared__ float tile[ROWS][COLS];
    const size_t begin = size_t(blockIdx.x) * ROWS * COLS, end = size_t(rows) * COLS;
    // A warp reads along a row of x, 4 sectors per request, and stores it to shared memory in 1 wavefront.
#pragma unroll
    for (int k = 0; k < COLS; k++) {
        size_t i = begin + k * ROWS + threadIdx.x;
        tile[(k * ROWS + threadIdx.x) / COLS][threadIdx.x % COLS] = i < end ? x[i] : 0;
    }
    __syncthreads();
    // One load and one store per float of a row: 64 requests per warp, 32 wavefronts each.
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

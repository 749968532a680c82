// Optimized: rows padded to 33 floats: a column spans 32 banks.
// predicts: baseline 0.534 ms = 66 * 128 * rows / smem  (66 wavefronts of 128 bytes per 32 floats)
// predicts: optimized 0.125 ms = 256 * rows / dram_copy  (4 wavefronts take less time than DRAM takes for 256 bytes)
// proves: counter l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum < 0.1 x baseline
// proves: counter l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum < 0.1 x baseline
#include "common/cuda/launch.cuh"

constexpr int COLS = 32;
constexpr int ROWS = 128;  // rows per block, one per thread

__global__ void sum_rows(const float* __restrict__ x, float* __restrict__ y, int rows) {
    __shared__ float tile[ROWS][COLS + 1];  // column c of row r lies in bank (33 r + c) mod 32 = (r + c) mod 32
    const size_t begin = size_t(blockIdx.x) * ROWS * COLS, end = size_t(rows) * COLS;
    // A warp reads along a row of x, 4 sectors per request, and stores it to shared memory in 1 wavefront.
#pragma unroll
    for (int k = 0; k < COLS; k++) {
        size_t i = begin + k * ROWS + threadIdx.x;
        tile[(k * ROWS + threadIdx.x) / COLS][threadIdx.x % COLS] = i < end ? x[i] : 0;
    }
    __syncthreads();
    // One load and one store per float of a row: 64 requests per warp, 1 wavefront each.
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

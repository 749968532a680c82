// Optimized: an XOR swizzle replaces padding: a column spans 32 banks.
// predicts: baseline 1.50 ms = (4 + 32) * rows * cols / (1.5 * dram_copy)  (through the L2, assumed 1.5 times as fast as DRAM)
// predicts: optimized 0.499 ms = (4 + 4) * rows * cols / dram_copy  (as the padded tile, with 3 % less shared memory per block)
// predicts: counter l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum = 0.125 x baseline
// proves: bar_sync
// proves: counter l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum < 0.2 x baseline
#include "common/cuda/launch.cuh"

constexpr int TILE = 32;
constexpr int ROWS = 4;  // rows of the tile per pass: 128 threads, 8 floats per thread

__global__ void transpose(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    __shared__ float tile[TILE][TILE];  // column c of row r lies at c ^ r: a row and a column each span 32 banks
    int c = blockIdx.x * TILE + threadIdx.x;
#pragma unroll
    for (int pass = 0; pass < TILE; pass += ROWS) {
        int r = blockIdx.y * TILE + threadIdx.y + pass;
        // The store is unconditional, so the compiler issues all 8 loads of a thread before it waits for one.
        tile[threadIdx.y + pass][threadIdx.x ^ (threadIdx.y + pass)] = r < rows && c < cols ? x[size_t(r) * cols + c] : 0;
    }
    __syncthreads();
    int r = blockIdx.y * TILE + threadIdx.x;
#pragma unroll
    for (int pass = 0; pass < TILE; pass += ROWS) {
        int c = blockIdx.x * TILE + threadIdx.y + pass;
        // One store request of a warp: 32 floats of a row of y, 4 sectors.
        if (r < rows && c < cols) y[size_t(c) * rows + r] = tile[threadIdx.x][(threadIdx.y + pass) ^ threadIdx.x];
    }
}

LAUNCH(const float* x, float* y, int rows, int cols, cudaStream_t stream) {
    dim3 grid(ceil_div(cols, TILE), ceil_div(rows, TILE));
    transpose<<<grid, dim3(TILE, ROWS), 0, stream>>>(x, y, rows, cols);
    return cudaGetLastError();
}

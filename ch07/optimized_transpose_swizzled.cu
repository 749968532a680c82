// Optimized: an XOR swizzle replaces padding: no conflicts, no gain.
// predicts: baseline 0.499 ms = (4 + 4) * rows * cols / dram_copy  (bytes per float through DRAM; rows of 33 floats, no conflicts)
// predicts: optimized 0.499 ms = (4 + 4) * rows * cols / dram_copy  (the same bytes, no conflicts, 3 % less shared memory per block)
// predicts: counter l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum = 1 x baseline
// proves: /\bLOP3\.LUT\b.*\b0x3c\b/
// proves: shared_memory <= 4 KiB
// has: counter l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum < 8388608
// has: counter l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum < 8388608
#include "common/cuda/launch.cuh"

constexpr int TILE = 32;
constexpr int ROWS = 4;  // rows of the tile per pass: 128 threads, 8 floats per thread

// The claims: LOP3 with 0x3c is an XOR, and 4 KiB leave no room for padding. At the timed shape warps make 8388608 requests to load
// a column and as many to store a row. Without XOR and padding, each of those loads has 31 conflicts.
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

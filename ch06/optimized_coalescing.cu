// Optimized: lanes on neighbouring columns: 4 sectors per access, not 32.
// predicts: baseline 0.374 ms = (4 + 32) * rows * cols / (1.5 * dram_copy)  (bytes per float through the L2, assumed 1.5 times DRAM)
// predicts: optimized 0.166 ms = (4 + 4) * rows * cols / (0.75 * dram_copy)  (through DRAM, 3/4 busy at a float per thread)
// proves: counter l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum < 0.2 x baseline
#include "common/cuda/launch.cuh"

constexpr int WIDE = 32, HIGH = 8;  // threads of a block

__global__ void scale_columns(const float* x, const float* scale, float* y, int rows, int cols) {
    int r = blockIdx.y * HIGH + threadIdx.y;
    int c = blockIdx.x * WIDE + threadIdx.x;
    if (r < rows && c < cols) y[size_t(r) * cols + c] = x[size_t(r) * cols + c] * scale[c];
}

LAUNCH(const float* x, const float* scale, float* y, int rows, int cols, cudaStream_t stream) {
    dim3 grid(ceil_div(cols, WIDE), ceil_div(rows, HIGH));
    scale_columns<<<grid, dim3(WIDE, HIGH), 0, stream>>>(x, scale, y, rows, cols);
    return cudaGetLastError();
}

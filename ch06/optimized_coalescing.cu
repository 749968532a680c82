// Optimized: x counts columns: the 32 threads of a warp are on 32 neighbouring floats, and each access touches the 4 sectors they fill.
// expects: 2.3x, 4 + 32 bytes a float through an L2 1.5 times as fast as DRAM, against 4 + 4 through DRAM, 3/4 busy at a float a thread
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

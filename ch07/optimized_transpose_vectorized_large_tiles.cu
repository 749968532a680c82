// Optimized: tiles of 64 x 64: 256-byte pieces in x and y.
// predicts: large_tiles 0.499 ms = (4 + 4) * rows * cols / dram_copy  (the bytes of the padded tile; pieces are not in the equation)
// proves: counter l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum < 0.2 x baseline
// has: shared_memory > 16 KiB
// has: not ld_128bit
#include "ch07/shared_large_tile.cuh"
#include "common/cuda/launch.cuh"

__global__ void __launch_bounds__(THREADS) transpose(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    transpose_tile(x, y, rows, cols, blockIdx.y * TILE, blockIdx.x * TILE);
}

LAUNCH(const float* x, float* y, int rows, int cols, cudaStream_t stream) {
    // As in the step before, blockIdx.x goes along x: blocks that run together read whole rows of x and write pieces of y.
    dim3 grid(ceil_div(cols, TILE), ceil_div(rows, TILE));
    transpose<<<grid, THREADS, 0, stream>>>(x, y, rows, cols);
    return cudaGetLastError();
}

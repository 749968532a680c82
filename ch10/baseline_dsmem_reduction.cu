// Baseline: 8 blocks per row, and a second kernel adds their sums.
// scratch: float partial[rows * 8]
#include "shared_block_reduce.cuh"

__global__ void __launch_bounds__(THREADS, 2) sum_shares(const float* __restrict__ x, float* __restrict__ partial, int cols) {
    const size_t row = blockIdx.x / BLOCKS;
    const float sum = sum_of_share(x + row * cols, cols, blockIdx.x % BLOCKS);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

// Eight lanes per row.
__global__ void __launch_bounds__(THREADS) add_partial_sums(const float* __restrict__ partial, float* __restrict__ y, int rows) {
    const int at = blockIdx.x * THREADS + threadIdx.x;
    const float sum = warp_reduce<Sum, BLOCKS>(at < rows * BLOCKS ? partial[at] : 0);
    if (at % BLOCKS == 0 && at < rows * BLOCKS) y[at / BLOCKS] = sum;
}

LAUNCH(const float* x, float* partial, float* y, int rows, int cols, cudaStream_t stream) {
    if (size_t(rows) * BLOCKS >= 1u << 31 || size_t(cols) + EACH * STRIDE >= 1u << 31)
        return cudaErrorInvalidValue;  // blocks and columns are counted in an int
    sum_shares<<<rows * BLOCKS, THREADS, 0, stream>>>(x, partial, cols);
    add_partial_sums<<<ceil_div(rows * BLOCKS, THREADS), THREADS, 0, stream>>>(partial, y, rows);
    return cudaGetLastError();
}

// Optimized: a cluster adds sums in its shared memory: one kernel, not 2.
// predicts: baseline 5.8 us = 4 * rows * cols / dram_read + 2.5e-6 + 1.5e-6  (2.5 us to start, fetch and be timed; 1.5 us a second kernel)
// predicts: optimized 4.8 us = 4 * rows * cols / dram_read + 2.5e-6 + 0.5e-6  (0.5 us for the cluster's barriers)
// proves: cluster_arrive
// proves: cluster_wait
// proves: dsmem_generic_ld
// proves: kernels == 1
// has: spills == 0
#include <cooperative_groups.h>

#include "shared_block_reduce.cuh"

__global__ void __cluster_dims__(BLOCKS, 1, 1) __launch_bounds__(THREADS, 2)
    sum_rows(const float* __restrict__ x, float* __restrict__ y, int cols) {
    __shared__ float partial;
    const auto cluster = cooperative_groups::this_cluster();
    const int rank = cluster.block_rank();
    const size_t row = blockIdx.x / BLOCKS;
    const float sum = sum_of_share(x + row * cols, cols, rank);
    if (threadIdx.x == 0) partial = sum;
    cluster.sync();
    if (rank == 0 && threadIdx.x < 32) {
        const float total = warp_reduce<Sum, BLOCKS>(*cluster.map_shared_rank(&partial, threadIdx.x % BLOCKS));
        if (threadIdx.x == 0) y[row] = total;
    }
    cluster.sync();  // a block's shared memory is gone when it exits, so all wait until the sums have been read
}

LAUNCH(const float* x, float* y, int rows, int cols, cudaStream_t stream) {
    if (size_t(rows) * BLOCKS >= 1u << 31 || size_t(cols) + EACH * STRIDE >= 1u << 31)
        return cudaErrorInvalidValue;  // blocks and columns are counted in an int
    sum_rows<<<rows * BLOCKS, THREADS, 0, stream>>>(x, y, cols);
    return cudaGetLastError();
}

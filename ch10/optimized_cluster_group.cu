// Optimized: a cluster keeps a row on chip: 2 DRAM passes, not 3.
// predicts: baseline 0.378 ms = 12 * rows * cols / dram_copy  (3 passes; 264 rows in flight are 135 MB, more than the L2 holds)
// predicts: optimized 0.270 ms = 1.07 * 8 * rows * cols / dram_copy  (2 passes; 7 % for blocks that wait for their cluster, a guess)
// proves: cluster_arrive
// proves: cluster_wait
// proves: /^ST\.E\b/
// proves: counter dram__bytes.sum < 0.75 x baseline
// The bound: 2 passes of 3 are 0.67; a cluster that read the row twice would move as much as the baseline.
// has: registers <= 64
// has: spills == 0
#include <cooperative_groups.h>

#include <utility>

#include "shared_block_reduce.cuh"

constexpr int LONGEST = STRIDE * EACH;  // floats of a row that fit the registers of eight blocks

// A block's maximum and sum over its share of a row.
struct alignas(8) Part {
    float max, sum;  // of exp(value - max)
};

__global__ void __cluster_dims__(BLOCKS, 1, 1) __launch_bounds__(THREADS, 2)
    softmax(const float* __restrict__ x, float* __restrict__ y, int cols) {
    __shared__ Part part[BLOCKS];
    auto cluster = cooperative_groups::this_cluster();
    auto started = cluster.barrier_arrive();
    const int rank = cluster.block_rank(), first = rank * THREADS + threadIdx.x, left = cols - first;
    const size_t begin = size_t(blockIdx.x / BLOCKS) * cols + first;
    float value[EACH], max = -FLT_MAX, sum = 0;
#pragma unroll
    for (int i = 0; i < EACH; i++) value[i] = i * STRIDE < left ? x[begin + i * STRIDE] : -INFINITY;
#pragma unroll
    for (int i = 0; i < EACH; i++) max = fmaxf(max, value[i]);
    max = block_reduce<Max>(max);
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        value[i] = __expf(value[i] - max);
        sum += value[i];
    }
    sum = block_reduce<Sum>(sum);
    cluster.barrier_wait(std::move(started));  // a peer's shared memory exists only once the peer has started
    if (threadIdx.x < BLOCKS) cluster.map_shared_rank(part, threadIdx.x)[rank] = {max, sum};
    cluster.sync();  // all values have been exchanged; from here on each block reads its own memory
    const Part of = part[threadIdx.x % BLOCKS];
    const float row_max = warp_reduce<Max, BLOCKS>(of.max);
    const float scale = __expf(max - row_max) / warp_reduce<Sum, BLOCKS>(of.sum * __expf(of.max - row_max));
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        if (i * STRIDE < left) y[begin + i * STRIDE] = value[i] * scale;
    }
}

LAUNCH(const float* x, float* y, int rows, int cols, cudaStream_t stream) {
    if (cols > LONGEST || size_t(rows) * BLOCKS >= 1u << 31) return cudaErrorInvalidValue;  // blocks are counted in an int
    softmax<<<rows * BLOCKS, THREADS, 0, stream>>>(x, y, cols);
    return cudaGetLastError();
}

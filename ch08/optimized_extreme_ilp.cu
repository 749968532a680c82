// Optimized: 16 warps an SM, a quarter of what it can hold, each with eight such loads under way, none waiting for another: 64 KB.
// expects: 1.05x, 650 ns of 4.7 TB/s are 23 KB an SM: 32 KB in flight nearly do, however many warps it takes to have them there
// proves: grid < baseline
// proves: more /\bLDG\.E\.128\b/
// scratch: float partial[528]
#include "common/cuda/launch.cuh"

constexpr int THREADS = 128;
constexpr int LOADS = 8;
constexpr int BLOCKS = 4 * 132;            // 512 threads an SM of an H200; the loop covers any n with any number of blocks
constexpr int TILE = 4 * THREADS * LOADS;  // floats that a block takes at a time

// The sum over the block, in all of its threads.
__device__ float sum_over_block(float value) {
    __shared__ float sums[THREADS / 32];
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_down_sync(~0u, value, distance);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
    __syncthreads();
    value = 0;
    for (float warp : sums) value += warp;
    return value;
}

__global__ void __launch_bounds__(THREADS, 1) sum(const float* __restrict__ x, float* __restrict__ sums, int n) {
    auto vectors = reinterpret_cast<const float4*>(x);
    int tiles = n / TILE;
    float4 total = {};
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        float4 v[LOADS];
#pragma unroll
        for (int j = 0; j < LOADS; j++) v[j] = vectors[(tile * LOADS + j) * THREADS + threadIdx.x];
#pragma unroll
        for (int j = 0; j < LOADS; j++) total = {total.x + v[j].x, total.y + v[j].y, total.z + v[j].z, total.w + v[j].w};
    }
    if (blockIdx.x == 0) {  // what fills no tile
        for (int i = tiles * TILE + threadIdx.x; i < n; i += THREADS) total.x += x[i];
    }
    float value = sum_over_block((total.x + total.y) + (total.z + total.w));
    if (threadIdx.x == 0) sums[blockIdx.x] = value;
}

LAUNCH(const float* x, float* y, float* partial, int n, cudaStream_t stream) {
    int tiles = ceil_div(n, TILE), blocks = tiles < BLOCKS ? tiles : BLOCKS;
    sum<<<blocks, THREADS, 0, stream>>>(x, partial, n);
    sum<<<1, THREADS, 0, stream>>>(partial, y, blocks);
    return cudaGetLastError();
}

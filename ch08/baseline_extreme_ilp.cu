// Baseline: 64 warps per SM with one load in flight each: 32 KB.
// scratch: float partial[1056]
#include "shared_grid_sum.cuh"
#include "common/cuda/aligned.cuh"

constexpr int THREADS = 256;
constexpr int BLOCKS = 8 * 132;    // 2048 threads per SM of an H200; the loop covers any n with any number of blocks
constexpr int TILE = 4 * THREADS;  // floats per block and iteration

__global__ void sum(const float* __restrict__ x, float* partial, float* y, int n) {
    auto vectors = reinterpret_cast<const float4*>(x);
    int tiles = n / TILE;
    float4 total = {};
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        float4 v = vectors[tile * THREADS + threadIdx.x];
        total = {total.x + v.x, total.y + v.y, total.z + v.z, total.w + v.w};
    }
    if (blockIdx.x == 0) {  // the rest, less than a tile
        for (int i = tiles * TILE + threadIdx.x; i < n; i += THREADS) total.x += x[i];
    }
    sum_over_grid<THREADS>((total.x + total.y) + (total.z + total.w), partial, y);
}

LAUNCH(const float* x, float* y, float* partial, int n, cudaStream_t stream) {
    if (!aligned(16, x)) return cudaErrorMisalignedAddress;
    int tiles = ceil_div(n, TILE), blocks = tiles < BLOCKS ? tiles : BLOCKS;
    sum<<<blocks, THREADS, 0, stream>>>(x, partial, y, n);
    return cudaGetLastError();
}

// Baseline: each thread reads its row of a and its column of b from global memory: 2 L1 wavefronts per FMA of a warp.
#include "common/cuda/launch.cuh"

constexpr int TILE = 32;

__global__ void multiply(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
    int i = blockIdx.y * TILE + threadIdx.y, j = blockIdx.x * TILE + threadIdx.x;
    if (i >= m || j >= n) return;
    float sum = 0;
    // Per p a warp makes two requests, of one wavefront each: one float of a for all lanes, and 32 adjacent floats of b.
    for (int p = 0; p < k; p++) sum = fmaf(a[size_t(i) * k + p], b[size_t(p) * n + j], sum);
    c[size_t(i) * n + j] = sum;
}

LAUNCH(const float* a, const float* b, float* c, int m, int n, int k, cudaStream_t stream) {
    dim3 grid(ceil_div(n, TILE), ceil_div(m, TILE));
    multiply<<<grid, dim3(TILE, TILE), 0, stream>>>(a, b, c, m, n, k);
    return cudaGetLastError();
}

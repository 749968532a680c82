// Baseline: a thread reads the row of a and the column of b that its entry of c needs: each float is read by 32 threads of the block.
#include "common/cuda/launch.cuh"

constexpr int TILE = 32;

__global__ void multiply(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
    int i = blockIdx.y * TILE + threadIdx.y, j = blockIdx.x * TILE + threadIdx.x;
    if (i >= m || j >= n) return;
    float sum = 0;
    // A warp's requests: one float of a for all lanes, and 32 neighbours of b, a turn of the L1 each for 32 FMAs.
    for (int p = 0; p < k; p++) sum = fmaf(a[size_t(i) * k + p], b[size_t(p) * n + j], sum);
    c[size_t(i) * n + j] = sum;
}

LAUNCH(const float* a, const float* b, float* c, int m, int n, int k, cudaStream_t stream) {
    dim3 grid(ceil_div(n, TILE), ceil_div(m, TILE));
    multiply<<<grid, dim3(TILE, TILE), 0, stream>>>(a, b, c, m, n, k);
    return cudaGetLastError();
}

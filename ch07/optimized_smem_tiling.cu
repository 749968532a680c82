// Optimized: tiles in shared memory: 52 wavefronts instead of 64.
// predicts: baseline 2.07 ms = 64 * 128 * m * n * k / 1024 / smem  (64 wavefronts of 128 bytes per 32 FMAs of a warp)
// predicts: optimized 1.42 ms = 44 * 128 * m * n * k / 1024 / smem  (8 for a, 32 for b, 2 to store tiles, 2 to load them)
// proves: bar_sync
// proves: fewer ld_readonly
// proves: lds_128bit
#include "common/cuda/launch.cuh"

constexpr int TILE = 32;

__global__ void multiply(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
    __shared__ alignas(16) float tile_a[TILE][TILE], tile_b[TILE][TILE];
    const int i = blockIdx.y * TILE + threadIdx.y, j = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int first = 0; first < k; first += TILE) {
        const int column = first + threadIdx.x, row = first + threadIdx.y;
        tile_a[threadIdx.y][threadIdx.x] = i < m && column < k ? a[size_t(i) * k + column] : 0;
        tile_b[threadIdx.y][threadIdx.x] = row < k && j < n ? b[size_t(row) * n + j] : 0;
        __syncthreads();
        // Requests of a warp per 4 values of p: one for 4 floats of a, the same for all lanes, and four for 32 adjacent floats of b.
#pragma unroll
        for (int p = 0; p < TILE; p++) sum = fmaf(tile_a[threadIdx.y][p], tile_b[p][threadIdx.x], sum);
        __syncthreads();
    }
    if (i < m && j < n) c[size_t(i) * n + j] = sum;
}

LAUNCH(const float* a, const float* b, float* c, int m, int n, int k, cudaStream_t stream) {
    dim3 grid(ceil_div(n, TILE), ceil_div(m, TILE));
    multiply<<<grid, dim3(TILE, TILE), 0, stream>>>(a, b, c, m, n, k);
    return cudaGetLastError();
}

// Baseline: one result per thread: 2 floats of shared memory per FMA.
#include "common/cuda/launch.cuh"

constexpr int TILE = 32;  // 1024 threads; 32 threads use each float of a tile

__global__ void __launch_bounds__(TILE* TILE)
    multiply(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
    __shared__ alignas(16) float a_tile[TILE][TILE], b_tile[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, col = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int first = 0; first < k; first += TILE) {
        int a_col = first + threadIdx.x, b_row = first + threadIdx.y;
        a_tile[threadIdx.y][threadIdx.x] = row < m && a_col < k ? a[size_t(row) * k + a_col] : 0;
        b_tile[threadIdx.y][threadIdx.x] = b_row < k && col < n ? b[size_t(b_row) * n + col] : 0;
        __syncthreads();
        // Per 32 FMAs: 32 loads from b's tile and 8 from a's tile, whose rows the compiler reads 16 bytes at a time.
#pragma unroll
        for (int l = 0; l < TILE; l++) sum = fmaf(a_tile[threadIdx.y][l], b_tile[l][threadIdx.x], sum);
        __syncthreads();
    }
    if (row < m && col < n) c[size_t(row) * n + col] = sum;
}

LAUNCH(const float* a, const float* b, float* c, int m, int n, int k, cudaStream_t stream) {
    dim3 grid(ceil_div(n, TILE), ceil_div(m, TILE));
    multiply<<<grid, dim3(TILE, TILE), 0, stream>>>(a, b, c, m, n, k);
    return cudaGetLastError();
}

// Optimized: the block loads its 384 floats of x once into shared memory, which has no lines: any 32 neighbours come in one access.
// expects: 1.5x, a load of x takes one turn of the memory pipe instead of two for 31 of 32 alignments; a load of a weight one, as before
// proves: bar_sync
// proves: fewer ld_readonly
#include "common/cuda/launch.cuh"

constexpr int TAPS = 129;
constexpr int THREADS = 256;

__global__ void average(const float* __restrict__ x, const float* __restrict__ weights, float* y, int n) {
    __shared__ float tile[THREADS + TAPS - 1];
    int i = blockIdx.x * THREADS + threadIdx.x, end = n + TAPS - 1;
    tile[threadIdx.x] = i < end ? x[i] : 0;
    if (threadIdx.x < TAPS - 1) tile[THREADS + threadIdx.x] = i + THREADS < end ? x[i + THREADS] : 0;
    __syncthreads();
    if (i >= n) return;
    float sum = 0;
    for (int k = 0; k < TAPS; k++) sum = fmaf(weights[k], tile[threadIdx.x + k], sum);
    y[i] = sum;
}

LAUNCH(const float* x, const float* weights, float* y, int n, cudaStream_t stream) {
    average<<<ceil_div(n, THREADS), THREADS, 0, stream>>>(x, weights, y, n);
    return cudaGetLastError();
}

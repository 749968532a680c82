// Baseline: each thread reads 129 neighbours through the L1.
#include "common/cuda/launch.cuh"

constexpr int TAPS = 129;
constexpr int THREADS = 256;

__global__ void average(const float* __restrict__ x, const float* __restrict__ weights, float* y, int n) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= n) return;
    float sum = 0;
    for (int k = 0; k < TAPS; k++) sum = fmaf(weights[k], x[i + k], sum);
    y[i] = sum;
}

LAUNCH(const float* x, const float* weights, float* y, int n, cudaStream_t stream) {
    average<<<ceil_div(n, THREADS), THREADS, 0, stream>>>(x, weights, y, n);
    return cudaGetLastError();
}

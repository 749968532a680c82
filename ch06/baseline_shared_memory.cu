// Baseline: every thread reads its 129 neighbours from global memory; the L1 has them, but a warp's 32 floats lie across two of its lines.
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

// Optimized: constant memory: weights are operands of the FMA.
// predicts: constant = 0.5 x baseline  (129 wavefronts per warp instead of 258)
// proves: fewer ld_readonly
// proves: /\bFFMA\b.*\bUR\d/
#include "common/cuda/launch.cuh"

constexpr int TAPS = 129;
constexpr int THREADS = 256;

__constant__ float taps[TAPS];

__global__ void average(const float* __restrict__ x, float* y, int n) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= n) return;
    float sum = 0;
#pragma unroll
    for (int k = 0; k < TAPS; k++) sum = fmaf(taps[k], x[i + k], sum);
    y[i] = sum;
}

PREPARE(const float* weights, cudaStream_t stream, void** state) {  // `constants` has the weights: no step sees others
    *state = nullptr;
    return cudaMemcpyToSymbolAsync(taps, weights, sizeof taps, 0, cudaMemcpyDeviceToDevice, stream);
}

LAUNCH(const float* x, float* y, int n, cudaStream_t stream) {
    average<<<ceil_div(n, THREADS), THREADS, 0, stream>>>(x, y, n);
    return cudaGetLastError();
}

// Baseline: even lanes run f while odd lanes wait, then the reverse.
// has: /\bBSSY\b/
#include "common/cuda/launch.cuh"

constexpr float DECAY = 63.0f / 64;
constexpr int ROUNDS = 128;
constexpr int THREADS = 256;

__device__ float f(float v) {
    for (int k = 0; k < ROUNDS; k++) v = fmaf(DECAY, v, 1 - DECAY);
    return v;
}

// Not the form of f: were both an FMA with other factors, the compiler would select the factors, and no warp would run anything twice.
__device__ float g(float v) {
    for (int k = 0; k < ROUNDS; k++) v = (v + 0.5f) * -DECAY;
    return v;
}

__global__ void filter(const float* x, float* y, int n) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < n) y[i] = threadIdx.x % 2 == 0 ? f(x[i]) : g(x[i]);
}

LAUNCH(const float* x, float* y, int n, cudaStream_t stream) {
    filter<<<ceil_div(n, THREADS), THREADS, 0, stream>>>(x, y, n);
    return cudaGetLastError();
}

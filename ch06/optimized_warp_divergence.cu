// Optimized: each warp runs one of the two filters, not both.
// predicts: optimized = 0.555 x baseline  (155.5 instructions per warp instead of 280: one filter of 127.5 on average, and 28 others)
// proves: counter smsp__thread_inst_executed_per_inst_executed.ratio > 1.5 x baseline
#include "common/cuda/launch.cuh"

constexpr float DECAY = 63.0f / 64;
constexpr float BIAS = 1.0f / 64;
constexpr int SMOOTHINGS = 128, LIMITINGS = 18;
constexpr int THREADS = 256;

// Smooths: 128 times one instruction.
__device__ float f(float v) {
    for (int k = 0; k < SMOOTHINGS; k++) v = fmaf(DECAY, v, 1 - DECAY);
    return v;
}

// Limits: 18 times 7 instructions, of which the reciprocal square root takes 4. It shares no form with f, so no select merges the two.
__device__ float g(float v) {
    for (int k = 0; k < LIMITINGS; k++) {
        v -= BIAS;
        v *= rsqrtf(fmaf(v / 16, v, 1));
    }
    return v;
}

__global__ void filter(const float* x, float* y, int n) {
    int odd = threadIdx.x / (THREADS / 2);  // the same for a whole warp
    int i = blockIdx.x * THREADS + 2 * (threadIdx.x % (THREADS / 2)) + odd;
    if (i < n) y[i] = odd == 0 ? f(x[i]) : g(x[i]);
}

LAUNCH(const float* x, float* y, int n, cudaStream_t stream) {
    filter<<<ceil_div(n, THREADS), THREADS, 0, stream>>>(x, y, n);
    return cudaGetLastError();
}

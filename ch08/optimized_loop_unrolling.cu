// Optimized: a known number of features: unrolled, x stays in registers.
// predicts: optimized = 0.5 x baseline  (one load per feature instead of two; an SM starts one per cycle)
// proves: fewer /\bBRA\b/ in nearest
// proves: counter smsp__inst_executed.sum < 0.5 x baseline
// The bound: per center 28 instructions of machine code are left of 75, which is 0.37.
#include "common/cuda/launch.cuh"

constexpr int THREADS = 256;

template <int DIMS>
__global__ void nearest(const float* __restrict__ x, const float* __restrict__ centers, float* __restrict__ y, int n, int count) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= n) return;
    float least = INFINITY;
    for (int c = 0; c < count; c++) {
        float sum = 0;
        // Instructions per feature: a load, a subtraction, an FMA. x[d * n + i] does not depend on c: it is loaded before the loop.
#pragma unroll
        for (int d = 0; d < DIMS; d++) {
            float difference = x[d * n + i] - centers[c * DIMS + d];
            sum = fmaf(difference, difference, sum);
        }
        least = fminf(least, sum);
    }
    y[i] = least;
}

LAUNCH(const float* x, const float* centers, float* y, int n, int count, int dims, cudaStream_t stream) {
    if (size_t(dims) * n >= 1u << 31 || size_t(count) * dims >= 1u << 31) return cudaErrorInvalidValue;  // the kernel's indices are int
    auto kernel = dims == 3 ? nearest<3> : dims == 8 ? nearest<8> : nullptr;
    if (!kernel) return cudaErrorInvalidValue;
    kernel<<<ceil_div(n, THREADS), THREADS, 0, stream>>>(x, centers, y, n, count);
    return cudaGetLastError();
}

// Baseline: a loop of any length: x is loaded again for every center.
#include "common/cuda/launch.cuh"

constexpr int THREADS = 256;

__global__ void nearest(const float* __restrict__ x, const float* __restrict__ centers, float* __restrict__ y, int n, int count, int dims) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= n) return;
    float least = INFINITY;
    for (int c = 0; c < count; c++) {
        float sum = 0;
        // Instructions per feature: 2 loads, an address, a subtraction, an FMA, and the loop, unrolled by the compiler 4 times or more.
        for (int d = 0; d < dims; d++) {
            float difference = x[d * n + i] - centers[c * dims + d];
            sum = fmaf(difference, difference, sum);
        }
        least = fminf(least, sum);
    }
    y[i] = least;
}

LAUNCH(const float* x, const float* centers, float* y, int n, int count, int dims, cudaStream_t stream) {
    if (size_t(dims) * n >= 1u << 31 || size_t(count) * dims >= 1u << 31) return cudaErrorInvalidValue;  // the kernel's indices are int
    nearest<<<ceil_div(n, THREADS), THREADS, 0, stream>>>(x, centers, y, n, count, dims);
    return cudaGetLastError();
}

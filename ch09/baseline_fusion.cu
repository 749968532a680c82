// Baseline: a kernel per function, sines in memory: 4 passes over DRAM.
// scratch: float sines[n]
#include "common/cuda/launch.cuh"

constexpr int THREADS = 256;
constexpr int RUN = 4;  // elements per thread, THREADS apart

// Issues all loads before the arithmetic: sinf branches, and the compiler does not move a load across a branch.
__device__ void load(float* values, const float* __restrict__ from, int first, int n) {
#pragma unroll
    for (int k = 0; k < RUN; k++) values[k] = first + k * THREADS < n ? from[first + k * THREADS] : 0;
}

__global__ void sine(const float* __restrict__ x, float* __restrict__ sines, int n) {
    int first = blockIdx.x * THREADS * RUN + threadIdx.x;
    float values[RUN];
    load(values, x, first, n);  // 4 bytes in
#pragma unroll
    for (int k = 0; k < RUN; k++) {
        int i = first + k * THREADS;
        if (i < n) sines[i] = sinf(values[k]);  // 4 bytes out
    }
}

__global__ void root(const float* __restrict__ sines, float* __restrict__ y, int n) {
    int first = blockIdx.x * THREADS * RUN + threadIdx.x;
    float values[RUN];
    load(values, sines, first, n);  // 4 bytes in
#pragma unroll
    for (int k = 0; k < RUN; k++) {
        int i = first + k * THREADS;
        if (i < n) y[i] = sqrtf(values[k]);  // 4 bytes out
    }
}

LAUNCH(const float* x, float* y, float* sines, int n, cudaStream_t stream) {
    int blocks = ceil_div(n, THREADS * RUN);
    sine<<<blocks, THREADS, 0, stream>>>(x, sines, n);
    root<<<blocks, THREADS, 0, stream>>>(sines, y, n);
    return cudaGetLastError();
}

// Optimized: one kernel, sines stay in registers: 2 passes over DRAM.
// predicts: baseline 0.250 ms = 16 * n / dram_copy  (bytes per element, in 4 passes)
// predicts: optimized 0.125 ms = 8 * n / dram_copy  (in 2 passes; about 50 instructions per element must hide behind the 8 bytes)
// proves: launches == 1
// proves: counter dram__bytes.sum < 0.6 x baseline
#include "common/cuda/launch.cuh"

constexpr int THREADS = 256;
constexpr int RUN = 4;  // elements per thread, THREADS apart

// Issues all loads before the arithmetic: sinf branches, and the compiler does not move a load across a branch.
__device__ void load(float* values, const float* __restrict__ from, int first, int n) {
#pragma unroll
    for (int k = 0; k < RUN; k++) values[k] = first + k * THREADS < n ? from[first + k * THREADS] : 0;
}

__global__ void root_of_sine(const float* __restrict__ x, float* __restrict__ y, int n) {
    int first = blockIdx.x * THREADS * RUN + threadIdx.x;
    float values[RUN];
    load(values, x, first, n);  // 4 bytes in
#pragma unroll
    for (int k = 0; k < RUN; k++) {
        int i = first + k * THREADS;
        if (i < n) y[i] = sqrtf(sinf(values[k]));  // 4 bytes out
    }
}

LAUNCH(const float* x, float* y, int n, cudaStream_t stream) {
    root_of_sine<<<ceil_div(n, THREADS * RUN), THREADS, 0, stream>>>(x, y, n);
    return cudaGetLastError();
}

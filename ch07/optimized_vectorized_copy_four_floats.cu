// Optimized: four 4-byte accesses per thread: 32 KB in flight per SM.
// predicts: four_floats 0.125 ms = 8 * n / dram_copy  (as many bytes in flight as one float4 per thread; DRAM needs 10.6 KB)
// proves: grid <= 0.25 x baseline
// has: not ld_128bit
#include "common/cuda/launch.cuh"

constexpr int THREADS = 256;
constexpr int FLOATS = 4;  // floats per thread, each of them a load of its own

__global__ void copy(const float* __restrict__ x, float* __restrict__ y, int n) {
    const int first = blockIdx.x * THREADS * FLOATS + threadIdx.x;
    float taken[FLOATS];
    // One request of a warp: all 32 bytes of each of 4 sectors. All loads are issued before the first store.
#pragma unroll
    for (int k = 0; k < FLOATS; k++) taken[k] = first + k * THREADS < n ? x[first + k * THREADS] : 0;
#pragma unroll
    for (int k = 0; k < FLOATS; k++)
        if (first + k * THREADS < n) y[first + k * THREADS] = taken[k];
}

LAUNCH(const float* x, float* y, int n, cudaStream_t stream) {
    copy<<<ceil_div(n, THREADS * FLOATS), THREADS, 0, stream>>>(x, y, n);
    return cudaGetLastError();
}

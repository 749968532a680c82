// Baseline: each thread copies 8 adjacent floats, as a CPU core would: 32 sectors per request.
#include "common/cuda/launch.cuh"

constexpr int THREADS = 256;
constexpr int RUN = 8;  // floats per thread; 7 of its loads are in flight at once, 56 KB per SM of 2048 threads

__global__ void copy(const float* __restrict__ x, float* __restrict__ y, int n) {
    int first = (blockIdx.x * THREADS + threadIdx.x) * RUN;
#pragma unroll
    for (int k = 0; k < RUN; k++) {
        int i = first + k;
        // One request of a warp: 4 bytes in each of 32 sectors.
        // The L1 keeps the sectors that were read for the next 7 requests. Writes leave it, most of them as partial sectors.
        if (i < n) y[i] = x[i];
    }
}

LAUNCH(const float* x, float* y, int n, cudaStream_t stream) {
    copy<<<ceil_div(n, THREADS * RUN), THREADS, 0, stream>>>(x, y, n);
    return cudaGetLastError();
}

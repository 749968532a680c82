// Baseline: the array is split over the threads as over the cores of a CPU, so a warp's lanes lie 32 bytes apart: 32 sectors a request.
#include "common/cuda/launch.cuh"

constexpr int THREADS = 256;
constexpr int RUN = 8;  // floats a thread; predicates let 7 of its loads fly at once: 56 KB for the 2048 threads of an SM

__global__ void copy(const float* __restrict__ x, float* __restrict__ y, int n) {
    int first = (blockIdx.x * THREADS + threadIdx.x) * RUN;
#pragma unroll
    for (int k = 0; k < RUN; k++) {
        int i = first + k;
        // A warp's request: 4 bytes of each of 32 sectors. What was read stays in the L1 for the next 7 requests; what is written does not.
        if (i < n) y[i] = x[i];
    }
}

LAUNCH(const float* x, float* y, int n, cudaStream_t stream) {
    copy<<<ceil_div(n, THREADS * RUN), THREADS, 0, stream>>>(x, y, n);
    return cudaGetLastError();
}

// Baseline: one thread adds all elements in a loop, as on a CPU.
// allows: grid
#include "common/cuda/launch.cuh"

__global__ void add(const float* a, const float* b, float* c, int n) {
    // The compiler must assume that c may overlap a or b, so each load waits for the store before it.
    for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
}

LAUNCH(const float* a, const float* b, float* c, int n, cudaStream_t stream) {
    add<<<1, 1, 0, stream>>>(a, b, c, n);
    return cudaGetLastError();
}

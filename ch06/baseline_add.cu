// Baseline: the loop of a CPU program, moved into a kernel: one thread adds all elements, one after the other.
// allows: grid
#include "common/cuda/launch.cuh"

__global__ void add(const float* a, const float* b, float* c, int n) {
    // For all that the compiler knows c is a or b, so no load passes the store before it: a thread waits for every element.
    for (int i = 0; i < n; i++) c[i] = a[i] + b[i];
}

LAUNCH(const float* a, const float* b, float* c, int n, cudaStream_t stream) {
    add<<<1, 1, 0, stream>>>(a, b, c, n);
    return cudaGetLastError();
}

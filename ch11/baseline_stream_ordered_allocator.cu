// Baseline: cudaMalloc and cudaFree per round: the driver maps memory, and cudaFree waits for the device.
// allows: alloc, sync
#include "ch11/shared_chebyshev.cuh"
#include "common/cuda/launch.cuh"

LAUNCH(const float* x, float* y, int rounds, int points, int degree, cudaStream_t stream) {
    const int blocks = ceil_div(points, THREADS);
    for (int round = 0; round < rounds; round++) {
        const size_t at = size_t(round) * points;
        float* u;
        if (cudaError_t error = cudaMalloc(&u, sizeof(float) * points)) return error;
        chebyshev<1><<<blocks, THREADS, 0, stream>>>(x + at, u, points, degree);
        times_chebyshev<2><<<blocks, THREADS, 0, stream>>>(x + at, u, y + at, points, degree);
        cudaFree(u);
    }
    return cudaGetLastError();
}

// Baseline: four small kernels in one stream: each starts when the one before it is done.
#include "ch11/shared_chebyshev.cuh"
#include "common/cuda/launch.cuh"

LAUNCH(const float* x, float* y, int points, int degree, cudaStream_t stream) {
    const int blocks = ceil_div(points, THREADS);
    chebyshev<1><<<blocks, THREADS, 0, stream>>>(x, y, points, degree);
    chebyshev<2><<<blocks, THREADS, 0, stream>>>(x, y + points, points, degree);
    chebyshev<3><<<blocks, THREADS, 0, stream>>>(x, y + 2 * size_t(points), points, degree);
    chebyshev<4><<<blocks, THREADS, 0, stream>>>(x, y + 3 * size_t(points), points, degree);
    return cudaGetLastError();
}

// Baseline: four micro-batches in one stream: each launch starts when the one before it is done.
#include "ch11/shared_two_pipelines.cuh"
#include "common/cuda/launch.cuh"

constexpr int BATCHES = 4;

LAUNCH(const float* x, float* y, int points, int degree, cudaStream_t stream) {
    for (int batch = 0; batch < BATCHES; batch++) {
        const size_t at = size_t(batch) * points;
        if (cudaError_t error = launch_batch(x + at, y + at, points, degree, stream)) return error;
    }
    return cudaSuccess;
}

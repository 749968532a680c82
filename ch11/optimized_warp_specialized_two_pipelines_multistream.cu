// Optimized: small launches in four high-priority streams overlap.
// predicts: baseline 0.288 ms = 4 * (16 * (8 * 4 * degree / sm_clock + 0.3e-6) + 1e-6)  (16 tiles; 0.3 us to pass one on)
// predicts: optimized 0.0750 ms = 16 * (8 * 4 * degree / sm_clock + 0.3e-6) + 4e-6  (one micro-batch; 4 us for fork and join)
// proves: overlap >= 0.5
// has: cp_async_16
#include "ch11/shared_branches.cuh"
#include "ch11/shared_two_pipelines.cuh"
#include "common/cuda/launch.cuh"

constexpr int BATCHES = 4;

PREPARE(void** state) {
    *state = new Branches<BATCHES>(highest_priority());
    return cudaGetLastError();
}

LAUNCH(const float* x, float* y, int points, int degree, void* state, cudaStream_t stream) {
    Branches<BATCHES>& branches = *static_cast<Branches<BATCHES>*>(state);
    branches.fork(stream);
    for (int batch = 0; batch < BATCHES; batch++) {
        const size_t at = size_t(batch) * points;
        if (cudaError_t error = launch_batch(x + at, y + at, points, degree, branches.streams[batch])) return error;
    }
    branches.join(stream);
    return cudaGetLastError();
}

FINISH(void* state) {
    delete static_cast<Branches<BATCHES>*>(state);
    return cudaGetLastError();
}

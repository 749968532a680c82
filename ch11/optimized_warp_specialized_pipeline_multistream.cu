// Optimized: in four streams, the next launch fills the tail wave.
// predicts: baseline 0.670 ms = 8 * (4 * (80 * 4 * degree / sm_clock + 0.3e-6) + 0.2e-6)  (8 waves; 80 points per thread and tile)
// predicts: optimized 0.423 ms = 5 * 4 * (80 * 4 * degree / sm_clock + 0.3e-6) + 4e-6  (1320 blocks are 5 waves of 264)
// proves: overlap >= 0.15
// has: cp_async_16
#include "ch11/shared_branches.cuh"
#include "ch11/shared_one_pipeline.cuh"
#include "common/cuda/launch.cuh"

constexpr int BATCHES = 4;

PREPARE(void** state) {
    *state = new Branches<BATCHES>;
    return allow_shared_memory();
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

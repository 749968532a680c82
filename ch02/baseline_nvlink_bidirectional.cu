// Baseline: both copies in one stream: one block comes, and then the other goes.
#include "ch02/shared_swap.cuh"

PREPARE(const float* parked, const float* w, int rows, int width, cudaStream_t stream, void** state) {
    Swap* swap = new Swap{};
    *state = swap;
    return swap->make(parked, w, rows, width, stream);
}

LAUNCH(const float* x, float* scores, float* fetched, int rows, int width, void* state, cudaStream_t stream) {
    const Swap& swap = *static_cast<Swap*>(state);
    const size_t bytes = sizeof(float) * rows * width;
    if (cudaError_t error = swap.fetch(fetched, bytes, stream)) return error;
    if (cudaError_t error = swap.send(x, bytes, stream)) return error;
    swap.neighbour.after(stream);
    if (cudaError_t error = swap.neighbour.score(scores, rows, width)) return error;
    swap.neighbour.before(stream);
    return cudaGetLastError();
}

FINISH(void* state) {
    Swap* swap = static_cast<Swap*>(state);
    const cudaError_t error = swap->drop();
    delete swap;
    return error;
}

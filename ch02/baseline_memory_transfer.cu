// Baseline: cudaMemcpyPeerAsync alone: without peer access the driver stages each copy through memory of the host.
#include "ch02/shared_neighbour.cuh"

struct Staged {
    Neighbour neighbour;
    float* scores;  // in the neighbour's memory
};

PREPARE(const float* w, int rows, int width, cudaStream_t stream, void** state) {
    Staged* staged = new Staged{};
    *state = staged;
    if (cudaError_t error = staged->neighbour.make(w, rows, width, stream)) return error;
    On on(staged->neighbour.there);
    return cudaMalloc(&staged->scores, sizeof(float) * rows);
}

LAUNCH(const float* x, float* scores, int rows, int width, void* state, cudaStream_t stream) {
    const Staged& staged = *static_cast<Staged*>(state);
    const Neighbour& neighbour = staged.neighbour;
    const size_t bytes = sizeof(float) * rows * width;
    if (cudaError_t error = cudaMemcpyPeerAsync(neighbour.x, neighbour.there, x, neighbour.home, bytes, stream)) return error;
    neighbour.after(stream);
    if (cudaError_t error = neighbour.score(staged.scores, rows, width)) return error;
    neighbour.before(stream);
    return cudaMemcpyPeerAsync(scores, neighbour.home, staged.scores, neighbour.there, sizeof(float) * rows, stream);
}

FINISH(void* state) {
    Staged* staged = static_cast<Staged*>(state);
    cudaFree(staged->scores);
    const cudaError_t error = staged->neighbour.drop();
    delete staged;
    return error;
}

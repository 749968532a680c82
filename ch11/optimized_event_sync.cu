// Optimized: stage 2's stream waits for an event, and no host waits.
// predicts: baseline 0.822 ms = chunks * (4 * degree / sm_clock + 2 * launch + 6e-6)  (6 us until the host knows that the device is done)
// predicts: optimized 0.459 ms = (chunks + 1) * (4 * degree / sm_clock + 1.5e-6)  (the stages overlap, one chunk apart)
// proves: calls cudaDeviceSynchronize < 0.2 x baseline
// scratch: float u[chunks * points]
#include "ch11/shared_branches.cuh"
#include "ch11/shared_chebyshev.cuh"
#include "common/cuda/launch.cuh"

PREPARE(void** state) {
    *state = new Branches<1>;
    return cudaGetLastError();
}

LAUNCH(const float* x, float* y, float* u, int chunks, int points, int degree, void* state, cudaStream_t stream) {
    Branches<1>& branch = *static_cast<Branches<1>*>(state);
    const int blocks = ceil_div(points, THREADS);
    for (int chunk = 0; chunk < chunks; chunk++) {
        const size_t at = size_t(chunk) * points;
        chebyshev<1><<<blocks, THREADS, 0, stream>>>(x + at, u + at, points, degree);
        cudaEventRecord(branch.forked, stream);
        cudaStreamWaitEvent(branch.streams[0], branch.forked, 0);  // waits for this record: the event is free for the next chunk
        times_chebyshev<2><<<blocks, THREADS, 0, branch.streams[0]>>>(x + at, u + at, y + at, points, degree);
    }
    branch.join(stream);
    return cudaGetLastError();
}

FINISH(void* state) {
    delete static_cast<Branches<1>*>(state);
    return cudaGetLastError();
}

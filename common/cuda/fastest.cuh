// Host code for a PREPARE that chooses between variants of the same work: times one variant on the current GPU.
// The harness does not use this timer, so no reported result depends on its accuracy.
#pragma once
#include <algorithm>
#include <cuda_runtime.h>

// Writes to `milliseconds` the shortest of five CUDA-event timings of `calls` calls of `way()`, in ms for all calls together.
// `way()` takes no argument, enqueues work on `stream` and returns a cudaError_t. The function synchronizes with the stream.
// Returns the first error of `way()` or of the runtime; the two events are then not destroyed.
template <typename Way>
cudaError_t fastest(Way way, int calls, cudaStream_t stream, float* milliseconds) {
    cudaEvent_t begin, end;
    *milliseconds = 1e30f;
    if (cudaError_t error = cudaEventCreate(&begin)) return error;
    if (cudaError_t error = cudaEventCreate(&end)) return error;
    for (int tries = 0; tries < 5; tries++) {
        float now = 0;
        cudaEventRecord(begin, stream);
        for (int call = 0; call < calls; call++)
            if (cudaError_t error = way()) return error;
        cudaEventRecord(end, stream);
        if (cudaError_t error = cudaEventSynchronize(end)) return error;
        if (cudaError_t error = cudaEventElapsedTime(&now, begin, end)) return error;
        *milliseconds = std::min(*milliseconds, now);
    }
    cudaEventDestroy(begin);
    return cudaEventDestroy(end);
}

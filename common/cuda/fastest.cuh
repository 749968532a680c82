// For a PREPARE that chooses between ways to do the same work: how long a way takes on the GPU at hand. Results are never timed by it.
#pragma once
#include <algorithm>
#include <cuda_runtime.h>

// The GPU's time for `calls` calls of `way()`, which queues work on `stream`: the least of five tries, in milliseconds.
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

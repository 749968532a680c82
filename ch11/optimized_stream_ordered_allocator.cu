// Optimized: cudaMallocAsync: a pool keeps memory, in stream order.
// predicts: baseline 1.19 ms = rounds * (20 * points / dram_copy + 2 * launch + 250e-6)  (a guess: 250 us for cudaMalloc and cudaFree)
// predicts: optimized 0.164 ms = rounds * (20 * points / dram_copy + 2e-6)  (20 bytes per point; 1 us from kernel to kernel)
// reason: cudaMalloc and cudaFree map and unmap memory while the device waits; the pool only hands a block out again
// proves: calls cudaMallocAsync >= 4
// allows: alloc
#include <cstdint>

#include "ch11/shared_chebyshev.cuh"
#include "common/cuda/launch.cuh"

// The pool gives memory back to the system at every synchronization unless it may keep it.
PREPARE(void** state) {
    cudaMemPool_t pool;
    uint64_t keep = UINT64_MAX;  // bytes
    cudaDeviceGetDefaultMemPool(&pool, 0);
    cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep);
    *state = pool;
    return cudaGetLastError();
}

LAUNCH(const float* x, float* y, int rounds, int points, int degree, cudaStream_t stream) {
    const int blocks = ceil_div(points, THREADS);
    for (int round = 0; round < rounds; round++) {
        const size_t at = size_t(round) * points;
        float* u;
        if (cudaError_t error = cudaMallocAsync(&u, sizeof(float) * points, stream)) return error;
        chebyshev<1><<<blocks, THREADS, 0, stream>>>(x + at, u, points, degree);
        times_chebyshev<2><<<blocks, THREADS, 0, stream>>>(x + at, u, y + at, points, degree);
        cudaFreeAsync(u, stream);  // free for what the stream gets from now on
    }
    return cudaGetLastError();
}

FINISH(void* state) { return cudaMemPoolTrimTo(static_cast<cudaMemPool_t>(state), 0); }

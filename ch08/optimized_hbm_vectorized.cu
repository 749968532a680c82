// Optimized: 16-byte accesses: 64 KB in flight per SM instead of 16.
// predicts: baseline 0.467 ms = 12 * n / 3.45e12 on h200  (16 KB in flight per SM, in a tuning run of 2026-11-22)
// predicts: optimized 0.366 ms = 12 * n / 4.40e12 on h200  (64 KB in flight, in the same run)
// proves: ld_128bit
// proves: st_128bit
// has: registers <= 32
#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"

constexpr int THREADS = 256;

// Of 294 variants none was more than 0.4 % faster in that run: larger blocks, more loads per thread, hints, persistent blocks, bulk copies.
__global__ void triad(const float* __restrict__ x, const float* __restrict__ z, float* __restrict__ y, int n, float factor) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < n / 4) {
        float4 a = reinterpret_cast<const float4*>(x)[i], b = reinterpret_cast<const float4*>(z)[i];
        reinterpret_cast<float4*>(y)[i] = {fmaf(factor, b.x, a.x), fmaf(factor, b.y, a.y), fmaf(factor, b.z, a.z), fmaf(factor, b.w, a.w)};
    } else if (i == n / 4) {  // the rest, less than a vector
        for (int last = 4 * i; last < n; last++) y[last] = fmaf(factor, z[last], x[last]);
    }
}

LAUNCH(const float* x, const float* z, float* y, int n, float factor, cudaStream_t stream) {
    if (!aligned(16, x, z, y)) return cudaErrorMisalignedAddress;
    triad<<<ceil_div(n, 4 * THREADS), THREADS, 0, stream>>>(x, z, y, n, factor);
    return cudaGetLastError();
}

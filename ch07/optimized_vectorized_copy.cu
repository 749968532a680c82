// Optimized: each thread copies one float4 by one 16-byte access.
// predicts: baseline 0.161 ms = max(4 * n * 650e-9 / (sm_count * 8192), 8 * n / dram_copy) on h200  (8 KB in flight per SM; 650 ns)
// predicts: optimized 0.125 ms = 8 * n / dram_copy  (32 KB in flight per SM; DRAM needs 10.6 KB)
// proves: ld_128bit
// proves: st_128bit
#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"

constexpr int THREADS = 256;
constexpr int WIDTH = 4;  // floats per vector

__global__ void copy(const float* __restrict__ x, float* __restrict__ y, int n) {
    int i = blockIdx.x * THREADS + threadIdx.x, vectors = n / WIDTH, rest = n % WIDTH;
    // One request of a warp: all 32 bytes of each of 16 sectors.
    if (i < vectors) reinterpret_cast<float4*>(y)[i] = reinterpret_cast<const float4*>(x)[i];
    if (i < rest) y[vectors * WIDTH + i] = x[vectors * WIDTH + i];
}

LAUNCH(const float* x, float* y, int n, cudaStream_t stream) {
    if (!aligned(sizeof(float4), x, y)) return cudaErrorMisalignedAddress;
    copy<<<ceil_div(n, THREADS * WIDTH), THREADS, 0, stream>>>(x, y, n);
    return cudaGetLastError();
}

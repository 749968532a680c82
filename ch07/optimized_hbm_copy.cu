// Optimized: 16 bytes a thread, once, are 32 KB in flight an SM and fill memory; more loads a thread, or reads evicted first, slow it down.
// expects: 1.3x, the baseline has 8 KB in flight for 650 ns on each of 132 SMs: 3.3 TB/s, read and written, of the 4.3 that this can have
// proves: ld_128bit
// proves: st_128bit
// has: not ld_streaming
#include "common/cuda/launch.cuh"

// Found by a tuning run on an H200 (2026-11-22), which took for 512 MiB each way, in us:
//     16-byte loads before a thread's first store   1: 253   2: 262   4: 266   8: 268   16: 271
//     eight of them, read evict-first (__ldcs)      282
//     cudaMemcpyAsync                               256
// 32 KB are three times what memory needs; beyond that, loads only queue. And what is under way in all SMs lies within 4 MB of x and of
// y here, but within 25 with eight loads, which is likely why those cost: copies whose blocks kept far apart took 275 and more.
constexpr int THREADS = 256;  // 4 KB a block. Blocks start 0.62 ns apart: with 1 KB each, as in the baseline, 3.3 TB/s at most
constexpr int WIDTH = 4;      // floats of a vector

__global__ void copy(const float* __restrict__ x, float* __restrict__ y, int n) {
    int i = blockIdx.x * THREADS + threadIdx.x, vectors = n / WIDTH, rest = n % WIDTH;
    // A warp's request: all 32 bytes of each of 16 sectors.
    if (i < vectors) reinterpret_cast<float4*>(y)[i] = reinterpret_cast<const float4*>(x)[i];
    if (i < rest) y[vectors * WIDTH + i] = x[vectors * WIDTH + i];
}

LAUNCH(const float* x, float* y, int n, cudaStream_t stream) {
    copy<<<ceil_div(n, THREADS * WIDTH), THREADS, 0, stream>>>(x, y, n);
    return cudaGetLastError();
}

// Optimized: one float4 per thread fills DRAM; more is slower.
// predicts: baseline 0.323 ms = max(4 * n * 650e-9 / (sm_count * 8192), 8 * n / dram_copy) on h200  (8 KB in flight per SM; 650 ns)
// predicts: optimized 0.250 ms = 8 * n / dram_copy
// proves: ld_128bit
// proves: st_128bit
// has: not ld_streaming
#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"

// Times of a tuning run on an H200, 512 MiB each way, in us:
//     16-byte loads before a thread's first store   1: 253   2: 262   4: 266   8: 268   16: 271
//     eight loads, read with __ldcs                 282
//     cudaMemcpyAsync                               256
// 32 KB in flight per SM are three times what DRAM needs: further loads only queue.
// Hypothesis: further loads also cost locality, as the loads in flight then span several times as much of x.
// Copies whose blocks were kept far apart took 275 us and more.
constexpr int THREADS = 256;  // 4 KB per block; blocks start 0.62 ns apart at best, so blocks of 1 KB reach 3.3 TB/s at most
constexpr int WIDTH = 4;      // floats per vector

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

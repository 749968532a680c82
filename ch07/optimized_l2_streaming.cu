// Optimized: what is read and written once is loaded and stored evict-first: it leaves the L2 before any row of the table does.
// expects: 1.3x, a token of 260 bytes; before, 65 % of the rows had left the L2, taken as halves with copies of their own: 84 bytes more
// proves: ld_streaming
// proves: /\bSTG\.E\.EF\.128\b/
// proves: counter dram__bytes_read.sum < 0.8 x baseline
#include "common/cuda/launch.cuh"

constexpr int THREADS = 256;
constexpr int LANES = 8;  // of a token: 16 bytes each

__device__ float4 operator+(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }

__global__ void add(const float4* __restrict__ x, const float4* __restrict__ table, const int* __restrict__ kind, float4* __restrict__ y,
                    int tokens) {
    const size_t i = size_t(blockIdx.x) * THREADS + threadIdx.x, token = i / LANES;
    if (token >= tokens) return;
    // A token: 128 bytes in and 128 out, once; 128 of the table, of which other tokens read the same.
    __stcs(y + i, __ldcs(x + i) + table[size_t(kind[token]) * LANES + i % LANES]);
}

LAUNCH(const float* x, const float* table, const int* kind, float* y, int tokens, cudaStream_t stream) {
    auto from = reinterpret_cast<const float4*>(x), rows = reinterpret_cast<const float4*>(table);
    add<<<ceil_div(tokens, THREADS / LANES), THREADS, 0, stream>>>(from, rows, kind, reinterpret_cast<float4*>(y), tokens);
    return cudaGetLastError();
}

// Baseline: default L2 priority: streams evict rows of the table.
#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"

constexpr int THREADS = 256;
constexpr int LANES = 8;               // lanes per token, 16 bytes each
constexpr int STEP = THREADS / LANES;  // tokens per block and step
constexpr int STEPS = 2;               // steps per block

__device__ float4 operator+(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }

__global__ void add(const float4* __restrict__ x, const float4* __restrict__ table, const int* __restrict__ kind, float4* __restrict__ y,
                    int tokens) {
    const int lane = threadIdx.x % LANES, first = blockIdx.x * STEP * STEPS + threadIdx.x / LANES;
    int next = first < tokens ? kind[first] : 0;
#pragma unroll 1
    for (int k = 0; k < STEPS; k++) {
        const int token = first + k * STEP, row = next;
        if (token >= tokens) return;
        // The next token's row number is loaded while this token's floats are in flight. So a token waits for memory once, not twice.
        if (k + 1 < STEPS && token + STEP < tokens) next = kind[token + STEP];
        const size_t i = size_t(token) * LANES + lane;
        // Per token: 128 bytes of x and 128 of y, touched once, and 128 of the table, which other tokens read again.
        y[i] = x[i] + table[size_t(row) * LANES + lane];
    }
}

LAUNCH(const float* x, const float* table, const int* kind, float* y, int tokens, cudaStream_t stream) {
    if (!aligned(16, x, table, y)) return cudaErrorMisalignedAddress;
    auto from = reinterpret_cast<const float4*>(x), rows = reinterpret_cast<const float4*>(table);
    add<<<ceil_div(tokens, STEP * STEPS), THREADS, 0, stream>>>(from, rows, kind, reinterpret_cast<float4*>(y), tokens);
    return cudaGetLastError();
}

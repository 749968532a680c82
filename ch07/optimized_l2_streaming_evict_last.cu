// Optimized: the rows of the table carry the L2's evict-last priority: they stay while what is read and written once goes by.
// expects: 1.2x, the bytes of evict-first streams, 266 a token and not 328: the streams can push out nothing but each other
// proves: /\bUMOV UR\d+, 0x140\b/
// proves: counter dram__bytes_read.sum < 0.8 x baseline
#include <cstdint>

#include "common/cuda/launch.cuh"

constexpr int THREADS = 256;
constexpr int LANES = 8;               // of a token: 16 bytes each
constexpr int STEP = THREADS / LANES;  // tokens that a block has at a time
constexpr int STEPS = 4;

// 0x14F in the upper bits of an access's descriptor is evict-last. Such lines outlive the kernel and take room from the next one, until
// cudaCtxResetPersistingL2Cache gives it back, as the harness does before each timed call. Evict-first leaves no such debt.
__device__ float4 load_to_keep(const float4* from) {
    float4 v;
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    asm("ld.global.nc.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
        : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
        : "l"(from), "l"(policy));
    return v;
}

__device__ float4 operator+(float4 a, float4 b) { return {a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w}; }

__global__ void add(const float4* __restrict__ x, const float4* __restrict__ table, const int* __restrict__ kind, float4* __restrict__ y,
                    int tokens) {
    const int lane = threadIdx.x % LANES, first = blockIdx.x * STEP * STEPS + threadIdx.x / LANES;
    int next = first < tokens ? kind[first] : 0;
#pragma unroll 1
    for (int k = 0; k < STEPS; k++) {
        const int token = first + k * STEP, row = next;
        if (token >= tokens) return;
        // Asked for while this token's floats are on their way: when it is needed, it is there, and a token waits for memory once.
        if (k + 1 < STEPS && token + STEP < tokens) next = kind[token + STEP];
        const size_t i = size_t(token) * LANES + lane;
        // A token: 128 bytes in and 128 out, once; 128 of the table, of which other tokens read the same.
        y[i] = x[i] + load_to_keep(table + size_t(row) * LANES + lane);
    }
}

LAUNCH(const float* x, const float* table, const int* kind, float* y, int tokens, cudaStream_t stream) {
    auto from = reinterpret_cast<const float4*>(x), rows = reinterpret_cast<const float4*>(table);
    add<<<ceil_div(tokens, STEP * STEPS), THREADS, 0, stream>>>(from, rows, kind, reinterpret_cast<float4*>(y), tokens);
    return cudaGetLastError();
}

// Optimized: what is read and written once goes first when the L2 needs room, and the rows of the table, read 32 times, go last.
// expects: 1.05x, 317 us to 301 in a tuning run on an H200; its L2 of 60 MB misses rows of a table of 17 even so: hits alone take 255
// proves: /\bUMOV UR\d+, 0x120\b/
// proves: /\bUMOV UR\d+, 0x140\b/
// proves: counter dram__bytes_read.sum < 0.9 x baseline
#include <cstdint>

#include "common/cuda/launch.cuh"

constexpr int THREADS = 256;
constexpr int LANES = 8;               // of a token: 16 bytes each
constexpr int STEP = THREADS / LANES;  // tokens that a block has at a time
constexpr int STEPS = 2;

// __ldcs and __stcs would not do: they compile to LDG.E.EF and STG.E.EF, as the PTX hint L1::evict_first does, a priority for the L1. What
// the L2 is told lies in the upper bits of an access's descriptor, where createpolicy puts 0x12F, evict-first, or 0x14F, evict-last.
// Tuned (2026-11-22, 16 MiB of table): the streams alone marked 304 us, the rows alone 319, neither 317. Rows marked last outlive the
// kernel and take room from the next one, until cudaCtxResetPersistingL2Cache gives it back, as the harness does before each timed call.
__device__ uint64_t evict_first() {
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

__device__ uint64_t evict_last() {
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

__device__ float4 load(const float4* from, uint64_t policy) {
    float4 v;
    asm("ld.global.nc.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
        : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
        : "l"(from), "l"(policy));
    return v;
}

__device__ void store(float4* to, float4 v, uint64_t policy) {
    asm volatile("st.global.L2::cache_hint.v4.f32 [%0], {%1, %2, %3, %4}, %5;" ::"l"(to), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w),
                 "l"(policy)
                 : "memory");
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
        store(y + i, load(x + i, evict_first()) + load(table + size_t(row) * LANES + lane, evict_last()), evict_first());
    }
}

LAUNCH(const float* x, const float* table, const int* kind, float* y, int tokens, cudaStream_t stream) {
    auto from = reinterpret_cast<const float4*>(x), rows = reinterpret_cast<const float4*>(table);
    add<<<ceil_div(tokens, STEP * STEPS), THREADS, 0, stream>>>(from, rows, kind, reinterpret_cast<float4*>(y), tokens);
    return cudaGetLastError();
}

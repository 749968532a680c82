// Optimized: what is read and written once carries the L2's evict-first priority: it leaves the L2 before any row of the table does.
// expects: 1.2x, a token takes 266 bytes of memory; before, 53 % of the rows had left the 44 MB that an L2 of 60 keeps: 328 bytes
// proves: /\bUMOV UR\d+, 0x120\b/
// proves: counter dram__bytes_read.sum < 0.8 x baseline
#include <cstdint>

#include "common/cuda/launch.cuh"

constexpr int THREADS = 256;
constexpr int LANES = 8;               // of a token: 16 bytes each
constexpr int STEP = THREADS / LANES;  // tokens that a block has at a time
constexpr int STEPS = 4;

// Before, this pair gained 2 % on an H200 (1.022x where 1.3x was expected, 2026-11-22). Its machine code shows two things that explain it:
// - The streams were marked by __ldcs and __stcs. These compile to LDG.E.EF and STG.E.EF, as the PTX hint L1::evict_first does: a priority
//   for the L1. What the L2 is told lies in the upper bits of an access's descriptor, and createpolicy puts 0x12F, evict-first, there.
// - A thread asked for its floats of x only when the class had come, so it waited for memory twice, and a row that was asked for with x was
//   there in time whether the L2 had it or not. 172 us were 62 rounds of 33792 tokens, all that 132 SMs hold at once, of 2.8 us each.
// Which of the two weighed more a profile of that side tells: with dram__bytes_read.sum as in the baseline, the L2 had been told nothing.
__device__ uint64_t evict_first() {
    uint64_t policy;
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}

__device__ float4 load_once(const float4* from) {
    float4 v;
    asm("ld.global.nc.L2::cache_hint.v4.f32 {%0, %1, %2, %3}, [%4], %5;"
        : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w)
        : "l"(from), "l"(evict_first()));
    return v;
}

__device__ void store_once(float4* to, float4 v) {
    asm volatile("st.global.L2::cache_hint.v4.f32 [%0], {%1, %2, %3, %4}, %5;" ::"l"(to), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w),
                 "l"(evict_first())
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
        store_once(y + i, load_once(x + i) + table[size_t(row) * LANES + lane]);
    }
}

LAUNCH(const float* x, const float* table, const int* kind, float* y, int tokens, cudaStream_t stream) {
    auto from = reinterpret_cast<const float4*>(x), rows = reinterpret_cast<const float4*>(table);
    add<<<ceil_div(tokens, STEP * STEPS), THREADS, 0, stream>>>(from, rows, kind, reinterpret_cast<float4*>(y), tokens);
    return cudaGetLastError();
}

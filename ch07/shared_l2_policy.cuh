// Loads and stores of 16 bytes that carry a policy of the L2. For the sides of l2_streaming.
//
// __ldcs and __stcs do not reach the L2. They compile to LDG.E.EF and STG.E.EF, the L1 priority of the PTX hint L1::evict_first.
// The L2's priority lies in the upper bits of an access's descriptor: createpolicy writes 0x12F for evict-first, 0x14F for evict-last.
#pragma once
#include <cstdint>

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

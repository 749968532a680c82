// The GPU's own clock.
#pragma once
#include <cstdint>

// PTX ISA 10.28, %globaltimer: nanoseconds, the same on all SMs. How often it moves on is the GPU's affair.
__device__ inline uint64_t global_time() {
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
    return now;
}

// Reads the GPU's nanosecond clock in a kernel.
#pragma once
#include <cstdint>

// The time in nanoseconds, comparable between SMs. PTX ISA 10.28, %globaltimer; sm_30 and later. Any thread may call it.
// The hardware decides how often the value advances, so two readings close together may be equal.
// `volatile` and the memory clobber keep the compiler from moving memory accesses across the reading.
__device__ inline uint64_t global_time() {
    uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now)::"memory");
    return now;
}

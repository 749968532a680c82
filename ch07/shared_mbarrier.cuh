// A barrier in shared memory that counts bytes: what a thread waits on for a copy that the hardware makes without it.
#pragma once
#include <cstdint>

// The address of what lies in shared memory, as PTX wants it there: 32 bits, not generic.
__device__ inline uint32_t shared_address(const void* pointer) { return static_cast<uint32_t>(__cvta_generic_to_shared(pointer)); }

// PTX ISA, Async proxy: bulk copies see shared memory by another way than threads do. What this thread has read and written there so far,
// and what it has seen others do, is done before copies that are asked for later.
__device__ inline void fence_before_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// PTX ISA, mbarrier.init: a phase is complete after `count` arrivals and all bytes that were announced; the next begins by itself.
__device__ inline void barrier_init(uint64_t* barrier, uint32_t count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count) : "memory");
    fence_before_copies();
}

// PTX ISA, mbarrier.arrive: announces `bytes` for the current phase, then arrives.
__device__ inline void barrier_expect(uint64_t* barrier, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes) : "memory");
}

// PTX ISA, mbarrier.try_wait: true once the phase of this parity, 0 for the first, is complete; it may give up earlier, so it is asked
// again. It acquires: what the copies of that phase wrote is then seen.
__device__ inline void barrier_wait(uint64_t* barrier, uint32_t parity) {
    uint32_t complete = 0;
    while (!complete) {
        asm volatile(
            "{\n"
            "  .reg .pred done;\n"
            "  mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n"
            "  selp.u32 %0, 1, 0, done;\n"
            "}"
            : "=r"(complete)
            : "r"(shared_address(barrier)), "r"(parity)
            : "memory");
    }
}

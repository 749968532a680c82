// Barriers in shared memory (mbarrier): they count arrivals and bytes, and asynchronous copies and tensor cores report to them.
//
// Sections of the PTX ISA, here and in the headers beside this one, are numbered as in version 9.0, that of CUDA 13.0; 9.3 counts anew.
#pragma once
#include <cstdint>

// The address of what lies in shared memory, as PTX names it there.
__device__ inline uint32_t shared_address(const void* pointer) { return static_cast<uint32_t>(__cvta_generic_to_shared(pointer)); }

// PTX ISA 9.7.13.15.9, mbarrier.init: a phase is complete after `count` arrivals and all bytes that were announced, and the next begins.
// PTX ISA 9.7.13.4, fence.proxy.async: what follows the copies and tensor cores, which see shared memory through the async proxy, finds it
// initialized.
__device__ inline void barrier_init(uint64_t* barrier, uint32_t count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// PTX ISA 9.7.13.15.13, mbarrier.arrive: one arrival, which releases what this thread did before.
__device__ inline void barrier_arrive(uint64_t* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// PTX ISA 9.7.13.15.13, mbarrier.arrive.expect_tx: announces `bytes`, then arrives.
__device__ inline void barrier_expect(uint64_t* barrier, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes) : "memory");
}

// PTX ISA 9.7.13.15.16, mbarrier.try_wait.parity: true if the phase that is now running is not of this parity, 0 for the first: then the
// phase that was waited for, the last or none at all, is complete, and what was released to it is seen. It may give up earlier, so it is
// asked again.
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

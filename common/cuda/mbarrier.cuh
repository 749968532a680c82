// Barriers in shared memory (mbarrier): they count thread arrivals and the bytes of asynchronous copies.
//
// A barrier is a uint64_t in shared memory, aligned to 8 bytes. Its phases are numbered from 0, and parity means phase modulo 2.
// A phase completes when its pending arrivals and its pending bytes are both 0; the next phase then begins.
// All helpers need sm_90 or later, because of try_wait, expect_tx and the async proxy.
//
// PTX ISA sections in common/cuda are numbered as in version 9.0, the version of CUDA 13.0. Version 9.3 numbers them differently.
#pragma once
#include <cstdint>

// The 32-bit address in the shared window of a generic pointer to shared memory. CUDA's __cvta_generic_to_shared; any thread.
__device__ inline uint32_t shared_address(const void* pointer) { return static_cast<uint32_t>(__cvta_generic_to_shared(pointer)); }

// Initializes a barrier whose every phase needs `count` arrivals, 1 to 2^20 - 1. PTX ISA 9.7.13.15.9, mbarrier.init.
// One thread calls it, once a barrier. The block must synchronize (__syncthreads or cluster_sync) before another thread uses the barrier.
// The fence makes the initialized barrier visible to the async proxy, through which the TMA and tensor cores access shared memory.
// PTX ISA 9.7.13.4, fence.proxy.async.
__device__ inline void barrier_init(uint64_t* barrier, uint32_t count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// Arrives once on the current phase. PTX ISA 9.7.13.15.13, mbarrier.arrive, with release semantics at block scope by default.
// The calling thread's earlier memory accesses are visible to a thread whose barrier_wait then returns. One arrival a calling thread.
__device__ inline void barrier_arrive(uint64_t* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// Adds `bytes` to the pending bytes of the current phase, then arrives once. PTX ISA 9.7.13.15.13, mbarrier.arrive.expect_tx.
// One thread a phase calls it, usually the thread that starts the copies. `bytes` is the sum over all copies of the phase.
// A copy clipped at the matrix edge still counts its whole tile. A wrong sum leaves the phase incomplete, and waiters hang.
__device__ inline void barrier_expect(uint64_t* barrier, uint32_t bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)), "r"(bytes) : "memory");
}

// Spins until the phase with this parity completes; the first phase has parity 0. PTX ISA 9.7.13.15.16, mbarrier.try_wait.parity.
// Parity 1 on a fresh barrier returns immediately, so that a producer finds the first buffers free.
// try_wait may time out before the phase completes, hence the loop. It acquires at block scope by default.
// Any number of threads may wait. A waiter must be at most one phase behind, because a parity does not tell phase n from phase n + 2.
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

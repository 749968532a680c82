// A barrier of all blocks in two halves, and the hint that brings weights into the L2: what is inline PTX in this lab.
#pragma once
#include <cuda_runtime.h>

constexpr unsigned TURN = 1u << 31;

// Blocks that have arrived, in the low 31 bits. The last arrival flips the top bit and leaves the others 0, ready for the next barrier.
// A launch therefore needs no memset, and may begin with either top bit. Two launches must not overlap.
__device__ unsigned arrivals;

// Between arrive() and wait() a block may do what needs nothing of other blocks. A cooperative launch promises that all blocks run.
// Happens before: a thread's writes -> __syncthreads -> thread 0's release -> thread 0's acquire elsewhere -> __syncthreads -> reads there.
struct GridBarrier {
    unsigned before = 0;  // the top bit until all have arrived; thread 0 alone uses it

    // The top bit cannot flip before this block arrives, so a relaxed load is enough.
    __device__ GridBarrier() {
        if (threadIdx.x == 0) asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(before) : "l"(&arrivals) : "memory");
        before &= TURN;
    }

    // Block 0 adds 2^31 - (blocks - 1), each other block 1: 2^31 in all. The addition returns nothing, so thread 0 does not wait for it.
    __device__ void arrive() const {
        __syncthreads();
        if (threadIdx.x > 0) return;
        const unsigned added = blockIdx.x == 0 ? TURN - (gridDim.x - 1) : 1;
        asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(&arrivals), "r"(added) : "memory");
    }

    __device__ void wait() {
        if (threadIdx.x == 0) {
            unsigned now;
            do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(&arrivals) : "memory");
            while ((now & TURN) == before);
            before ^= TURN;
        }
        __syncthreads();
    }
};

// Asks for 32 bytes, a sector, to be in the L2. Nobody waits, and nothing arrives in a register.
__device__ inline void prefetch_sector(const char* at) { asm volatile("prefetch.global.L2 [%0];" ::"l"(at)); }

// What tests/ch10/mutants.py puts into the headers of common/cuda: delays at random, and waits that end their kernel instead of hanging.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "common/cuda/clock.cuh"

struct Disturbance {
    uint32_t seed;         // of the delays; with a multiple of 5 there are none
    int* gave_up;          // in the host's memory: 1 where a wait took too long
    uint64_t patience_ns;  // what is too long
};
__constant__ Disturbance disturbance;

extern "C" cudaError_t disturb(uint32_t seed, int* gave_up, uint64_t patience_ns) {
    const Disturbance next{seed, gave_up, patience_ns};
    return cudaMemcpyToSymbol(disturbance, &next, sizeof next);
}

__device__ inline uint32_t mixed(uint32_t x) {
    x = (x ^ x >> 16) * 0x7feb352d;
    x = (x ^ x >> 15) * 0x846ca68b;
    return x ^ x >> 16;
}

// By the seed, a quarter of the places are slow for a warp, half of the times that it comes there; elsewhere it is late once in 32 times.
// All lanes sleep alike, and without a branch, so a warp stays together. The longest sleep is 256 ns, 1, 4 or 16 us, by the seed.
__device__ inline void delay(uint32_t place) {
    asm volatile("" : "+r"(place));  // so that nothing of it is computed ahead, and kept where products leave no register for it
    const uint32_t warp = blockIdx.x * 32 + threadIdx.x / 32, kind = disturbance.seed % 5;
    const uint32_t slow = mixed(mixed(disturbance.seed * 64 + place) ^ warp);
    const uint32_t now = mixed(slow ^ uint32_t(clock64()));
    const uint32_t below = kind ? 64u << 2 * kind : 1;
    const bool sleeps = now % (slow % 4 ? 32 : 2) == 0;
    __nanosleep(sleeps ? (now >> 8) % below : 0);
}

// Called before a wait asks: the first time is free, the second is when it began. That this is neither 0 nor 1 is said in bits: a loop of
// which the compiler does not know it takes registers that products have.
__device__ inline uint64_t still_waiting(uint64_t since) {
    if (since == 0) return 1;
    const uint64_t now = global_time();
    if (since == 1) return now | 2;
    if (int64_t(now - since) > int64_t(disturbance.patience_ns)) {
        *disturbance.gave_up = 1;
        __threadfence_system();
        __trap();
    }
    return since;
}

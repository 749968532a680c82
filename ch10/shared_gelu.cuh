// The activation that the sides of warp_spec_pingpong apply before they round: GELU by the error function, as a transformer's MLP has it.
#pragma once

#include "shared_wgmma_sums.cuh"

struct Gelu {
    __device__ static EightSums of(EightSums sums) {
#pragma unroll
        for (float& x : sums.x) x = 0.5f * x * (1 + erff(0.70710678f * x));
        return sums;
    }
};

// A function that is called: inlined, a whole tile's 128 sums a thread are 51 KB of code without a loop, not fetched as fast as it runs.
struct CalledGelu {
    __device__ __noinline__ static EightSums of(EightSums sums) { return Gelu::of(sums); }
};

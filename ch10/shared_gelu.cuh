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

// A called function. Inlined for 128 sums per thread, a tile is 51 KB of straight code, which is not fetched as fast as it could run.
struct CalledGelu {
    __device__ __noinline__ static EightSums of(EightSums sums) { return Gelu::of(sums); }
};

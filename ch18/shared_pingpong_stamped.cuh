// Stamps of the points of shared_pingpong.cuh: Attention<2, 192, 2, Stamped> is the timed kernel with a clock.
#pragma once
#include "common/cuda/clock.cuh"
#include "common/cuda/warpgroup.cuh"
#include "shared_pingpong.cuh"

struct Trace {
    unsigned long long* stamps;  // [blocks][warpgroups][most][POINTS], in ns; 0 where nothing was stamped
    uint32_t most;
};
__constant__ Trace trace;

// One thread of a warpgroup stamps; step counts the tiles of keys of the block.
struct Stamped {
    static constexpr int WARPGROUPS = 2;
    __device__ static void stamp(Point point, uint32_t step) {
        if (threadIdx.x % WARPGROUP) return;
        const uint32_t row = blockIdx.x * WARPGROUPS + threadIdx.x / WARPGROUP;
        trace.stamps[(row * trace.most + step) * POINTS + point] = global_time();
    }
};

// What the roles of shared_triple_overlap.cuh stamp with the GPU's clock where they are built with -DTRACE; without it, nothing.
#pragma once
#include "common/cuda/clock.cuh"
#include "common/cuda/mbarrier.cuh"

enum Point { ASKED, LOADED, BEGUN, MULTIPLIED, DRAINED, POINTS };  // the first two of a step of a block, the others of a tile

#ifdef TRACE
constexpr int TRACED = 1;
struct Trace {
    unsigned long long* stamps;  // [POINTS][blocks][most], 0 where there is none
    int most;
};
__device__ Trace trace;
__device__ inline void stamp(Point point, int index) {
    trace.stamps[(size_t(point) * gridDim.x + blockIdx.x) * trace.most + index] = global_time();
}
#else
constexpr int TRACED = 0;
__device__ inline void stamp(Point, int) {}
#endif

// One thread that has nothing else to do sees every step arrive. It arrives on `consumed` as if it read the stage, so it misses none.
template <typename Shared, typename Walk>
__device__ void watch(Shared& shared, const Walk& walk) {
    int step = 0;
    for (int tile = 0; walk.has(tile); tile++) {
        for (int i = 0; i < walk.steps; i++, step++) {
            barrier_wait(&shared.loaded[step % Shared::STAGES], step / Shared::STAGES % 2);
            stamp(LOADED, step);
            barrier_arrive(&shared.consumed[step % Shared::STAGES]);
        }
    }
}

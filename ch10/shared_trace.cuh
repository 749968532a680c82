// What the roles of shared_triple_overlap.cuh stamp with the GPU's clock, of Traced<Mma> where it is built with -DTRACE; of Mma nothing.
#pragma once
#include "common/cuda/clock.cuh"
#include "common/cuda/mbarrier.cuh"

// Of a step: its tiles were asked for, and have come; multiply began to wait for them, and to issue its products; its stage was given
// back. Of a tile: its sums were first read, and its last store was complete.
enum Point { ASKED, LOADED, WANTED, FED, CONSUMED, READING, STORED, POINTS };

template <typename Mma>
constexpr bool TRACED = false;

#ifdef TRACE
struct Trace {
    unsigned long long* stamps;  // [POINTS][blocks][most], 0 where there is none
    int most;
};
__device__ Trace trace;

template <typename Mma>
struct Traced : Mma {
    using Mma::Mma;
};
template <typename Mma>
constexpr bool TRACED<Traced<Mma>> = true;

// One thread of a role stamps, the one that leads.
template <typename Mma>
__device__ void stamp(Point point, int index, bool leads = true) {
    if constexpr (TRACED<Mma>) {
        if (leads) trace.stamps[(size_t(point) * gridDim.x + blockIdx.x) * trace.most + index] = global_time();
    }
}

// PTX ISA 9.7.9.25.6.2, cp.async.bulk.wait_group: until all that this thread stored is written, for which nothing else waits.
template <typename Mma>
__device__ void stamp_stored(int tile, bool leads) {
    if constexpr (TRACED<Mma>) {
        if (leads) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
        stamp<Mma>(STORED, tile, leads);
    }
}
#else
template <typename Mma>
__device__ void stamp(Point, int, bool = true) {}
template <typename Mma>
__device__ void stamp_stored(int, bool) {}
#endif

// A thread that has nothing else to do sees every stage filled, or given back, and stamps it. It arrives on the other barrier as if it had
// part in what comes next there, at once, so it misses nothing and nobody waits for it.
template <typename Mma, typename Shared, typename Walk>
__device__ void watch(Shared& shared, const Walk& walk, Point point) {
    uint64_t* const seen = point == LOADED ? shared.loaded : shared.consumed;
    uint64_t* const next = point == LOADED ? shared.consumed : shared.loaded;
    const int ahead = point == LOADED ? 0 : Shared::STAGES;  // what was given back is filled for the step so many later
    int steps = 0;
    for (int tile = 0; walk.has(tile); tile++) steps += walk.steps;
    for (int step = 0; step < min(ahead, steps); step++) barrier_arrive(&next[step]);
    for (int step = 0; step < steps; step++) {
        barrier_wait(&seen[step % Shared::STAGES], step / Shared::STAGES % 2);
        stamp<Mma>(point, step);
        if (step + ahead < steps) barrier_arrive(&next[step % Shared::STAGES]);
    }
}

// Time stamps of the roles of shared_triple_overlap.cuh: written for Traced<Mma> in a build with -DTRACE, never for a plain Mma.
#pragma once
#include "common/cuda/clock.cuh"
#include "common/cuda/mbarrier.cuh"

// Per K-step: its loads were issued (ASKED) and have arrived (LOADED); multiply began to wait (WANTED) and to issue products (FED); the
// stage was released (CONSUMED). Per tile: its sums were first read (READING), its last store was complete (STORED).
enum Point { ASKED, LOADED, WANTED, FED, CONSUMED, READING, STORED, POINTS };

template <typename Mma>
constexpr bool TRACED = false;

#ifdef TRACE
struct Trace {
    unsigned long long* stamps;  // [POINTS][blocks][most]; 0 where nothing was stamped
    int most;
};
__device__ Trace trace;

template <typename Mma>
struct Traced : Mma {
    using Mma::Mma;
};
template <typename Mma>
constexpr bool TRACED<Traced<Mma>> = true;

// Only the leading thread of a role stamps.
template <typename Mma>
__device__ void stamp(Point point, int index, bool leads = true) {
    if constexpr (TRACED<Mma>) {
        if (leads) trace.stamps[(size_t(point) * gridDim.x + blockIdx.x) * trace.most + index] = global_time();
    }
}

// PTX ISA 9.7.9.25.6.2, cp.async.bulk.wait_group: waits until all stores of this thread are complete, which the kernel itself need not.
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

// An idle thread waits for every stage to be filled, or released, and stamps it. It is counted by the barrier of the next phase and arrives
// there at once. So it sees every phase, and nobody waits for it.
template <typename Mma, typename Shared, typename Walk>
__device__ void watch(Shared& shared, const Walk& walk, Point point) {
    uint64_t* const seen = point == LOADED ? shared.loaded : shared.consumed;
    uint64_t* const next = point == LOADED ? shared.consumed : shared.loaded;
    const int ahead = point == LOADED ? 0 : Shared::STAGES;  // a released stage is filled again for the K-step STAGES later
    int steps = 0;
    for (int tile = 0; walk.has(tile); tile++) steps += walk.steps;
    for (int step = 0; step < min(ahead, steps); step++) barrier_arrive(&next[step]);
    for (int step = 0; step < steps; step++) {
        barrier_wait(&seen[step % Shared::STAGES], step / Shared::STAGES % 2);
        stamp<Mma>(point, step);
        if (step + ahead < steps) barrier_arrive(&next[step % Shared::STAGES]);
    }
}

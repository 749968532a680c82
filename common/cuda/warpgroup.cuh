// Warp specialization: electing one lane of a warp, a barrier for one warpgroup, and moving registers between warpgroups.
#pragma once
#include <cstdint>

constexpr int WARPGROUP = 128;  // threads: four consecutive warps, of which the first has a rank that is a multiple of four

// True in exactly one lane of the warp, and always in the same lane. PTX ISA 9.7.13.14, elect.sync; sm_90 and later.
// All 32 lanes must call it converged: the member mask is 0xffffffff.
__device__ inline bool elect() {
    uint32_t elected;
    asm volatile("{ .reg .pred one; elect.sync _|one, 0xffffffff; selp.u32 %0, 1, 0, one; }" : "=r"(elected));
    return elected;
}

// Waits until 128 threads have arrived at named barrier `barrier`, 1 to 15. PTX ISA 9.7.13.1, bar.sync; any architecture.
// All threads of one warpgroup call it, and no others. Barrier 0 belongs to __syncthreads.
__device__ inline void warpgroup_sync(int barrier) { asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(WARPGROUP) : "memory"); }

// A turn that warpgroups pass on: await_turn waits until pass_turn was called for `barrier`, 1 to 15, by another warpgroup.
// PTX ISA 9.7.13.1, bar.sync and bar.arrive; any architecture. All threads of both warpgroups call it: 128 wait, 128 only arrive.
// A turn must have been taken before it is passed to the same barrier again.
__device__ inline void await_turn(int barrier) { asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(2 * WARPGROUP) : "memory"); }
__device__ inline void pass_turn(int barrier) { asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "n"(2 * WARPGROUP) : "memory"); }

// Change the registers per thread of the calling warpgroup to REGISTERS. PTX ISA 9.7.19.5, setmaxnreg; sm_90a and later.
// keep_registers lowers the count and returns the rest to the block's pool. take_registers raises it, and blocks until the pool has enough.
// All warps of the warpgroup execute the same call, converged, and synchronize before the next setmaxnreg.
// The kernel must be compiled with a fixed register count per thread (__launch_bounds__). Raised registers have undefined contents.
template <int REGISTERS>
constexpr bool CAN_BE_ASKED_FOR = REGISTERS >= 24 && REGISTERS <= 256 && REGISTERS % 8 == 0;
template <int REGISTERS>
__device__ inline void keep_registers() {
    static_assert(CAN_BE_ASKED_FOR<REGISTERS>, "registers of a thread are a multiple of 8 from 24 to 256");
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}
template <int REGISTERS>
__device__ inline void take_registers() {
    static_assert(CAN_BE_ASKED_FOR<REGISTERS>, "registers of a thread are a multiple of 8 from 24 to 256");
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

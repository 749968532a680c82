// Warps with roles of their own: which thread acts for a warp, a barrier of one warpgroup, and registers moved between warpgroups.
#pragma once
#include <cstdint>

constexpr int WARPGROUP = 128;  // threads: four warps, the first of them a multiple of four

// PTX ISA 9.7.13.14, elect.sync: true for one lane of a converged warp, always the same one.
__device__ inline bool elect() {
    uint32_t elected;
    asm volatile("{ .reg .pred one; elect.sync _|one, 0xffffffff; selp.u32 %0, 1, 0, one; }" : "=r"(elected));
    return elected;
}

// PTX ISA 9.7.13.1, bar.sync: until all threads of a warpgroup are here; 0 is the barrier of __syncthreads.
__device__ inline void warpgroup_sync(int barrier) { asm volatile("bar.sync %0, %1;" ::"r"(barrier), "n"(WARPGROUP) : "memory"); }

// PTX ISA 9.7.19.5, setmaxnreg: all warps of a warpgroup give registers back to the block, or wait until it has so many for them. They
// ask for the same number, and meet before any of them asks again.
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

// Stand-in for what warps do together: the threads of a warp need not run in step here.
#pragma once
#include "cuda_runtime.h"

constexpr int WARPGROUP = 128;

inline bool elect() { return threadIdx.x % 32 == 0; }
#define warpgroup_sync(barrier) \
    if (!on_cpu::skips(__FILE__, __LINE__)) on_cpu::block->meetings[barrier].meet(WARPGROUP)
template <int REGISTERS>
void keep_registers() {
    static_assert(REGISTERS % 8 == 0 && REGISTERS >= 24 && REGISTERS <= 168);
}
template <int REGISTERS>
void take_registers() {
    static_assert(REGISTERS % 8 == 0 && REGISTERS >= 168 && REGISTERS <= 256);
}

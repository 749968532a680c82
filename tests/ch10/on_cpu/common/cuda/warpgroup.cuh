// Stand-in for what warps do together: the threads of a warp need not run in step here.
#pragma once
#include "cuda_runtime.h"

constexpr int WARPGROUP = 128;

inline bool elect() { return threadIdx.x % 32 == 0; }
#define warpgroup_sync(barrier) \
    if (!on_cpu::skips(__FILE__, __LINE__)) on_cpu::block->meetings[barrier].meet(WARPGROUP)
// A turn: 128 threads wait for it, and 128 others pass it on.
inline void take_turn(int barrier) { on_cpu::block->meetings[barrier].meet(2 * WARPGROUP); }
#define await_turn(barrier) \
    if (!on_cpu::skips(__FILE__, __LINE__)) take_turn(barrier)
inline void pass_turn(int barrier) {
    on_cpu::Meeting& turn = on_cpu::block->meetings[barrier];
    if (++turn.arrived < 2 * WARPGROUP) return on_cpu::pause();
    turn.arrived = 0;
    turn.waiting.wake();
}
template <int REGISTERS>
void keep_registers() {
    static_assert(REGISTERS % 8 == 0 && REGISTERS >= 24 && REGISTERS <= 168);
}
template <int REGISTERS>
void take_registers() {
    static_assert(REGISTERS % 8 == 0 && REGISTERS >= 168 && REGISTERS <= 256);
}

// Stand-in for the mbarriers: arrivals and bytes are counted, and one too many is an error.
#pragma once
#include "cuda_runtime.h"

namespace on_cpu {
struct Barrier {
    int count = 0, missing = 0;
    int64_t bytes = 0;
    uint32_t phase = 0;
    bool shown = false;  // to the cluster
    void check() {
        if (missing || bytes) return;
        missing = count;
        phase++;
    }
};
inline std::map<const void*, Barrier> barriers;
inline Barrier& barrier_at(const void* address, bool from_peer = false) {
    if (!barriers.count(address)) note("a barrier is used that was not initialized in this block");
    for (Block& each : cluster) {
        const auto offset = static_cast<const unsigned char*>(address) - memories[each.rank];
        if (offset >= 0 && offset < ptrdiff_t(SHARED) && each.ended()) note("a barrier is used of a block that has ended");
    }
    if (from_peer && !barriers[address].shown) note("a peer uses a barrier that was not shown to the cluster");
    return barriers[address];
}
inline void arrive(const void* address, bool from_peer = false) {
    Barrier& barrier = barrier_at(address, from_peer);
    if (barrier.missing-- == 0) note("an arrival too many in a phase");
    barrier.check();
}
inline void complete(const void* address, int64_t bytes, bool from_peer = false) {
    Barrier& barrier = barrier_at(address, from_peer);
    barrier.bytes -= bytes;
    barrier.check();
}
inline void wait_for(const void* address, uint32_t parity) {
    require(parity < 2, "a parity is 0 or 1");
    Barrier& barrier = barrier_at(address);
    wait([&barrier, parity] { return barrier.phase % 2 != parity; });
}
}  // namespace on_cpu

// Addresses in shared memory begin at 0x400, so that an address is not taken for an offset.
inline uint32_t shared_address(const void* pointer) {
    const auto* at = static_cast<const unsigned char*>(pointer);
    on_cpu::require(at >= on_cpu::shared_memory && at < on_cpu::shared_memory + on_cpu::SHARED, "an address outside shared memory");
    return static_cast<uint32_t>(at - on_cpu::shared_memory) + 0x400;
}
inline unsigned char* shared_pointer(uint32_t address) { return on_cpu::shared_memory + (address - 0x400); }

inline void barrier_init(uint64_t* barrier, uint32_t count) {
    on_cpu::barriers[barrier] = {static_cast<int>(count), static_cast<int>(count)};
}
inline void barrier_arrive(uint64_t* barrier) {
    on_cpu::arrive(barrier);
    on_cpu::pause();
}
inline void barrier_expect(uint64_t* barrier, uint32_t bytes) {
    on_cpu::barrier_at(barrier).bytes += bytes;
    on_cpu::arrive(barrier);
}
#define barrier_wait(...) \
    if (!on_cpu::skips(__FILE__, __LINE__)) on_cpu::wait_for(__VA_ARGS__)

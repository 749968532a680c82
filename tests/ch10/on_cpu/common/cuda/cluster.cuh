// Stand-in for clusters: a peer's shared memory is that block's, and may be reached while it runs.
#pragma once
#include "common/cuda/mbarrier.cuh"

inline uint32_t cluster_rank() { return on_cpu::block->rank; }
inline void cluster_sync(ON_CPU_HERE) {
    if (!on_cpu::skips(file, line)) on_cpu::wait_at_cluster_barrier(on_cpu::arrive_at_cluster_barrier());
}
inline void show_barriers_to_cluster(ON_CPU_HERE) {
    if (on_cpu::skips(file, line)) return;
    for (auto& [address, barrier] : on_cpu::barriers) {
        const auto offset = static_cast<const unsigned char*>(address) - on_cpu::shared_memory;
        if (offset >= 0 && offset < ptrdiff_t(on_cpu::SHARED)) barrier.shown = true;
    }
}
inline void cluster_arrive(uint64_t* barrier, uint32_t rank) {
    on_cpu::arrive(on_cpu::in_block(barrier, rank), rank != cluster_rank());
    on_cpu::pause();
}

// Stand-in for the cluster among the cooperative groups.
#pragma once
#include "cuda_runtime.h"

namespace cooperative_groups {
struct cluster_group {
    using arrival_token = int;
    static unsigned block_rank() { return on_cpu::block->rank; }
    static unsigned num_blocks() { return on_cpu::cluster.size(); }
    static arrival_token barrier_arrive() { return on_cpu::arrive_at_cluster_barrier(); }
    static void barrier_wait(arrival_token&& since, ON_CPU_HERE) {
        if (!on_cpu::skips(file, line)) on_cpu::wait_at_cluster_barrier(since);
    }
    static void sync(ON_CPU_HERE) {
        if (!on_cpu::skips(file, line)) on_cpu::wait_at_cluster_barrier(on_cpu::arrive_at_cluster_barrier());
    }
    template <typename T>
    static T* map_shared_rank(T* pointer, int rank) {
        return on_cpu::in_block(pointer, rank);
    }
};
inline cluster_group this_cluster() { return {}; }
}  // namespace cooperative_groups

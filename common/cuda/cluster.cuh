// Thread block clusters: blocks that are co-resident and reach each other's shared memory and mbarriers.
//
// All helpers need sm_90 or later. A cluster has at most 8 blocks on every such GPU; more needs an opt-in (CUDA C++ Programming Guide).
// A kernel without a cluster dimension runs in clusters of one block.
#pragma once
#include <cstdint>

#include "common/cuda/mbarrier.cuh"

// The rank of this block in its cluster, from 0. PTX ISA 10.16, %cluster_ctarank. Any thread may call it.
__device__ inline uint32_t cluster_rank() {
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// Waits until every thread of every block of the cluster has arrived. PTX ISA 9.7.13.3, barrier.cluster.arrive and .wait.
// Arriving releases and waiting acquires: each thread's earlier writes are visible to the whole cluster afterwards.
// Every thread of the cluster must call it. The lanes of a warp need not be converged, because neither instruction is .aligned.
// A kernel whose blocks access a peer's shared memory must end with a call: an exited block's shared memory is gone.
__device__ inline void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

// Makes the mbarriers that this thread initialized visible to the cluster. PTX ISA 9.7.13.4, fence.mbarrier_init.
// Call it in the initializing thread, after barrier_init and before cluster_sync. Peers may use the barriers after cluster_sync.
__device__ inline void show_barriers_to_cluster() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

// Arrives once on a barrier of block `rank`, at the shared-memory offset that `barrier` has in this block.
// PTX ISA 9.7.9.23, mapa, translates the address. PTX ISA 9.7.13.15.13, mbarrier.arrive, accepts it as .shared::cluster.
// One thread an arrival. Block `rank` must have initialized the barrier (show_barriers_to_cluster) and must not have exited.
// The arrival may only say that a buffer was read and can be overwritten. It does not publish data to the peer block.
// Release at scope .cta is therefore enough, with barrier_wait on the other side.
// Scope .cluster would add a GPU-wide fence (MEMBAR.ALL.GPU) to every arrival.
__device__ inline void cluster_arrive(uint64_t* barrier, uint32_t rank) {
    asm volatile(
        "{\n"
        "  .reg .b32 there;\n"
        "  mapa.shared::cluster.u32 there, %0, %1;\n"
        "  mbarrier.arrive.release.cta.shared::cluster.b64 _, [there];\n"
        "}" ::"r"(shared_address(barrier)),
        "r"(rank)
        : "memory");
}

// Clusters: blocks, portably up to eight of them, that run at once on SMs which reach each other's shared memory and barriers.
#pragma once
#include <cstdint>

#include "common/cuda/mbarrier.cuh"

// PTX ISA 10.16, %cluster_ctarank: the number of this block in its cluster.
__device__ inline uint32_t cluster_rank() {
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// PTX ISA 9.7.13.3, barrier.cluster: until all threads of all blocks of the cluster have come; what each did before, all see after. Warps
// need not be converged. Without one at the end a block may be gone, and its shared memory with it, when a peer reaches for it.
__device__ inline void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release;" ::: "memory");
    asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}

// PTX ISA 9.7.13.4, fence.mbarrier_init: peers find the barriers that this thread has initialized, once they have met it in cluster_sync.
__device__ inline void show_barriers_to_cluster() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

// PTX ISA 9.7.9.23, mapa: the address that the shared memory of block `rank` has for this one. 9.7.13.15.13, mbarrier.arrive,
// .shared::cluster: an arrival on the barrier that lies there where `barrier` lies here. It hands over no data, only leave to overwrite
// what was read, so its release has the scope of this block, .cta, and barrier_wait does for it. Scope .cluster would be a fence of the
// whole GPU (MEMBAR.ALL.GPU) each time.
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

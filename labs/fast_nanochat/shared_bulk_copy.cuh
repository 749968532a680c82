// Copies by the TMA that need no tensor map.
#pragma once
#include <cstdint>

#include "common/cuda/mbarrier.cuh"

// PTX ISA 9.7.9.25.4.1, cp.async.bulk: the TMA copies `bytes` from global to shared memory and counts them on the barrier. Both addresses
// and `bytes` are multiples of 16.
__device__ inline void copy_bytes(void* to, const void* from, uint32_t bytes, uint64_t* barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(barrier))
                 : "memory");
}

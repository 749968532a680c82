// Blackwell's tensor cores in pairs (cta_group::2): one thread of block 0 starts products of 256 rows on the SMs of two blocks, a cluster.
#pragma once
#include "common/cuda/tcgen05.cuh"
#include "common/cuda/tma.cuh"

// PTX ISA 9.7.16.7.1, tcgen05.alloc with .cta_group::2: a warp of each block of the pair takes as many columns, and they wait for each
// other. All tcgen05 statements of a kernel are of one group size.
__device__ inline void tensor_memory_take_pair(uint32_t* address, uint32_t columns) {
    asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared_address(address)), "r"(columns)
                 : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;" ::: "memory");
}
__device__ inline void tensor_memory_give_back_pair(uint32_t address, uint32_t columns) {
    asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns) : "memory");
}

// PTX ISA 9.7.16.10.9.1, tcgen05.mma with .cta_group::2 and M = 256: block r of the pair holds rows 128 r to 128 r + 127 of a, as many of
// the N rows of b from N / 2 r on, each where the descriptor says in its own shared memory, and the sums of its rows of a in its own tensor
// memory.
__device__ inline void tcgen05_multiply_pair(uint32_t sum, uint64_t a, uint64_t b, uint32_t instruction, bool add) {
    asm volatile(
        "{\n"
        "  .reg .pred add;\n"
        "  setp.ne.b32 add, %4, 0;\n"
        "  tcgen05.mma.cta_group::2.kind::f16 [%0], %1, %2, %3, add;\n"
        "}" ::"r"(sum),
        "l"(a), "l"(b), "r"(instruction), "r"(int(add))
        : "memory");
}

// PTX ISA 9.7.16.12.1, tcgen05.commit, .multicast::cluster: the barrier that lies there in either block gets an arrival.
__device__ inline void tcgen05_commit_pair(uint64_t* barrier) {
    asm volatile(
        "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(shared_address(barrier)),
        "h"(uint16_t(3))
        : "memory");
}

// PTX ISA 9.7.9.25.5.2, cp.async.bulk.tensor with .cta_group::2: the tile lands in this block, and its bytes complete on the barrier that
// lies in block 0 of the pair where `barrier` lies in this one. Without it, tile and barrier are of one block.
__device__ inline void load_tile_for_pair(void* tile, const CUtensorMap* map, int column, int row, uint64_t* barrier) {
    asm volatile(
        "{\n"
        "  .reg .b32 first;\n"
        "  mapa.shared::cluster.u32 first, %4, 0;\n"
        "  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2 [%0], [%1, {%2, %3}], [first];\n"
        "}" ::"r"(shared_address(tile)),
        "l"(map), "r"(column), "r"(row), "r"(shared_address(barrier))
        : "memory");
}

// Blackwell's tensor cores in pairs (.cta_group::2): one thread starts products of 256 rows on the SMs of two blocks.
//
// All helpers need sm_100a or sm_103a, and a cluster of two blocks: ranks 0 and 1. Block 0 starts the products.
// All tcgen05 instructions of a kernel must have the same .cta_group, so do not mix these helpers with their tcgen05.cuh counterparts.
#pragma once
#include "common/cuda/tcgen05.cuh"
#include "common/cuda/tma.cuh"

// Allocates `columns` columns of tensor memory in both blocks, and writes each block's address to its own `address` in shared memory.
// PTX ISA 9.7.16.7.1, tcgen05.alloc with .cta_group::2. One converged warp of each block calls it, with the same number of columns.
// The two warps wait for each other. `columns` is a power of two from 32 to 512.
__device__ inline void tensor_memory_take_pair(uint32_t* address, uint32_t columns) {
    asm volatile("tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared_address(address)), "r"(columns)
                 : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;" ::: "memory");
}

// Frees columns in both blocks. PTX ISA 9.7.16.7.1, tcgen05.dealloc with .cta_group::2. One converged warp of each block calls it.
// The two warps wait for each other. Both blocks must have finished with the columns, and neither may have exited.
__device__ inline void tensor_memory_give_back_pair(uint32_t address, uint32_t columns) {
    asm volatile("tcgen05.dealloc.cta_group::2.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns) : "memory");
}

// Starts sum = a b^T, or sum += a b^T where `add`: a is 256 x 16 bf16, b is N x 16 bf16. PTX ISA 9.7.16.10.9.1, .cta_group::2, M = 256.
// One thread of block 0 calls it. tcgen05_commit_pair reports completion. Block r of the pair holds:
//   a    rows 128 r to 128 r + 127, in its shared memory;
//   b    N / 2 rows, from row r N / 2 on, in its shared memory;
//   sum  the rows of its part of a, in its tensor memory.
// The descriptors give addresses that hold in both blocks, so both blocks must have the same shared-memory layout.
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

// Makes the barrier at this address in both blocks receive one arrival when all products that this thread started are complete.
// PTX ISA 9.7.16.12.1, tcgen05.commit, .multicast::cluster; the block mask 3 names ranks 0 and 1.
// Called by the thread that called tcgen05_multiply_pair.
__device__ inline void tcgen05_commit_pair(uint64_t* barrier) {
    asm volatile(
        "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;" ::"r"(shared_address(barrier)),
        "h"(uint16_t(3))
        : "memory");
}

// Starts loading a tile into this block's shared memory, and counts its bytes on block 0's barrier at the offset of `barrier`.
// PTX ISA 9.7.9.25.5.2, cp.async.bulk.tensor with .cta_group::2, which lets the tile and the barrier lie in different blocks of the pair.
// One thread calls it. Block 0 must announce the bytes of both blocks with barrier_expect.
// The coordinates, in elements, and the alignments are those of load_tile.
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

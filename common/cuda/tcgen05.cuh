// Blackwell's tensor cores (tcgen05): one thread starts products of tiles in shared memory, and the sums lie in tensor memory.
//
// All helpers need sm_100a or sm_103a. These are the instructions of one block, .cta_group::1; tcgen05_pair.cuh has two blocks.
#pragma once
#include <cstdint>

#include "common/cuda/mbarrier.cuh"
#include "common/cuda/operands.cuh"

// Allocates `columns` columns of tensor memory and writes their address to `address`, which lies in shared memory.
// PTX ISA 9.7.16.7.1, tcgen05.alloc. `columns` is a power of two from 32 to 512. All 32 lanes of one converged warp call it.
// The warp blocks until so many columns are free. Other threads may read the address after a block-wide synchronization.
// relinquish_alloc_permit: the block cannot allocate again, so a co-resident block can.
__device__ inline void tensor_memory_take(uint32_t* address, uint32_t columns) {
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(shared_address(address)), "r"(columns)
                 : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
}

// Frees columns of tensor memory. PTX ISA 9.7.16.7.1, tcgen05.dealloc. All 32 lanes of one converged warp call it.
// Every allocation must be freed before the block exits, with the same number of columns and after the last access to them.
__device__ inline void tensor_memory_give_back(uint32_t address, uint32_t columns) {
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(address), "r"(columns) : "memory");
}

// Order tcgen05 operations of two threads around a barrier. PTX ISA 9.7.16.6, memory consistency, and 9.7.16.11.1, tcgen05.fence.
// The first thread calls tcgen05_fence_before, then arrives. The second thread waits, then calls tcgen05_fence_after.
// A thread that signals with tcgen05_commit needs no fence before it.
// Source: PTX ISA 9.7.16.6.4.4 shows another thread loading committed products, with only the waiter's fence.
// PTX ISA 9.7.16.12.1, tcgen05.commit, does not mention fences.
__device__ inline void tcgen05_fence_before() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }
__device__ inline void tcgen05_fence_after() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }

// Starts sum = a b^T, or sum += a b^T where `add`: a is M x 16 bf16, b is N x 16 bf16. PTX ISA 9.7.16.10.9.1, tcgen05.mma.
// `sum` is a tensor-memory address, a and b are tcgen05_operand descriptors, and `instruction` is tcgen05_instruction(M, N).
// One thread a block calls it. The call returns before the product is complete: tcgen05_commit reports completion.
// Products with the same accumulator and shape execute in the order of their calls.
// Both tiles must be visible to the async proxy: loaded by the TMA, or followed by show_to_async_proxy in the writing threads.
__device__ inline void tcgen05_multiply(uint32_t sum, uint64_t a, uint64_t b, uint32_t instruction, bool add) {
    asm volatile(
        "{\n"
        "  .reg .pred add;\n"
        "  setp.ne.b32 add, %4, 0;\n"
        "  tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, add;\n"
        "}" ::"r"(sum),
        "l"(a), "l"(b), "r"(instruction), "r"(int(add))
        : "memory");
}

// Makes `barrier` receive one arrival when all products that this thread has started so far are complete.
// PTX ISA 9.7.16.12.1, tcgen05.commit. Called by the thread that called tcgen05_multiply. The barrier lies in this block.
__device__ inline void tcgen05_commit(uint64_t* barrier) {
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(shared_address(barrier)) : "memory");
}

// Loads 64 consecutive 32-bit columns of tensor memory: lane l of the warp gets the cells of tensor-memory lane l past `address`.
// PTX ISA 9.7.16.8.3, tcgen05.ld.32x32b.x64. All 32 lanes of a converged warp call it with the same address.
// Warp w of a warpgroup can access only the 32 lanes from 32 w on, so `address` must name lane 32 w (PTX ISA 9.7.16.8.1).
// The load is asynchronous. tcgen05.wait::ld (PTX ISA 9.7.16.8.5) is in the same statement, so no code can read the registers too early.
// The products must be complete: wait on the committed barrier, then call tcgen05_fence_after.
__device__ inline void tcgen05_load(uint32_t (&column)[64], uint32_t address) {
    asm volatile(
        "tcgen05.ld.sync.aligned.32x32b.x64.b32 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
        "}, [%64];\n"
        "tcgen05.wait::ld.sync.aligned;"
        : "=r"(column[0]), "=r"(column[1]), "=r"(column[2]), "=r"(column[3]), "=r"(column[4]), "=r"(column[5]), "=r"(column[6]),
          "=r"(column[7]), "=r"(column[8]), "=r"(column[9]), "=r"(column[10]), "=r"(column[11]), "=r"(column[12]), "=r"(column[13]),
          "=r"(column[14]), "=r"(column[15]), "=r"(column[16]), "=r"(column[17]), "=r"(column[18]), "=r"(column[19]), "=r"(column[20]),
          "=r"(column[21]), "=r"(column[22]), "=r"(column[23]), "=r"(column[24]), "=r"(column[25]), "=r"(column[26]), "=r"(column[27]),
          "=r"(column[28]), "=r"(column[29]), "=r"(column[30]), "=r"(column[31]), "=r"(column[32]), "=r"(column[33]), "=r"(column[34]),
          "=r"(column[35]), "=r"(column[36]), "=r"(column[37]), "=r"(column[38]), "=r"(column[39]), "=r"(column[40]), "=r"(column[41]),
          "=r"(column[42]), "=r"(column[43]), "=r"(column[44]), "=r"(column[45]), "=r"(column[46]), "=r"(column[47]), "=r"(column[48]),
          "=r"(column[49]), "=r"(column[50]), "=r"(column[51]), "=r"(column[52]), "=r"(column[53]), "=r"(column[54]), "=r"(column[55]),
          "=r"(column[56]), "=r"(column[57]), "=r"(column[58]), "=r"(column[59]), "=r"(column[60]), "=r"(column[61]), "=r"(column[62]),
          "=r"(column[63])
        : "r"(address)
        : "memory");
}

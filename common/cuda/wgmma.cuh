// Hopper's tensor cores (wgmma): a warpgroup multiplies tiles of shared memory, and keeps the sums in its registers.
//
// All instructions need sm_90a. All 128 threads of a warpgroup call each helper, converged (.sync.aligned), with the same operands.
// The order is: wgmma_fence, products, wgmma_commit, wgmma_wait. Until the wait, neither tiles nor sums may be touched.
// Tiles must be visible to the async proxy: loaded by the TMA, or followed by show_to_async_proxy in the writing threads.
#pragma once
#include <cstdint>

#include "common/cuda/operands.cuh"

// Orders the warpgroup's earlier accesses to the sum registers before the products that follow. PTX ISA 9.7.15.7.1, wgmma.fence.
// Needed before the first product, and whenever the registers were accessed by other instructions.
__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

// Makes the products since the last commit one group, for wgmma_wait. PTX ISA 9.7.15.7.2, wgmma.commit_group.
__device__ inline void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits until at most the PENDING newest groups are in flight. PTX ISA 9.7.15.7.3, wgmma.wait_group.
// The sums of the older groups are complete, and their tiles may be overwritten.
template <int PENDING>
__device__ inline void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// Starts sum = a b^T, or sum += a b^T where `add`. PTX ISA 9.7.15.5.2, wgmma.mma_async m64n128k16.
// a is 64 x 16 and b is 128 x 16, both bf16 and K-major; the sums are 64 x 128 fp32. a and b are wgmma_operand descriptors.
// PTX ISA 9.7.15.5.1.1: sum[4 j + 2 i + e] of thread t is the element in row 16 (t / 32) + (t % 32) / 4 + 8 i, column 8 j + 2 (t % 4) + e.
// Here i and e are 0 or 1, and divisions round down.
__device__ inline void wgmma_64x128x16(float (&sum)[64], uint64_t a, uint64_t b, bool add) {
    asm volatile(
        "{\n"
        "  .reg .pred add;\n"
        "  setp.ne.b32 add, %66, 0;\n"
        "  wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
        "}, %64, %65, add, 1, 1, 0, 0;\n"
        "}"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3]), "+f"(sum[4]), "+f"(sum[5]), "+f"(sum[6]), "+f"(sum[7]), "+f"(sum[8]),
          "+f"(sum[9]), "+f"(sum[10]), "+f"(sum[11]), "+f"(sum[12]), "+f"(sum[13]), "+f"(sum[14]), "+f"(sum[15]), "+f"(sum[16]),
          "+f"(sum[17]), "+f"(sum[18]), "+f"(sum[19]), "+f"(sum[20]), "+f"(sum[21]), "+f"(sum[22]), "+f"(sum[23]), "+f"(sum[24]),
          "+f"(sum[25]), "+f"(sum[26]), "+f"(sum[27]), "+f"(sum[28]), "+f"(sum[29]), "+f"(sum[30]), "+f"(sum[31]), "+f"(sum[32]),
          "+f"(sum[33]), "+f"(sum[34]), "+f"(sum[35]), "+f"(sum[36]), "+f"(sum[37]), "+f"(sum[38]), "+f"(sum[39]), "+f"(sum[40]),
          "+f"(sum[41]), "+f"(sum[42]), "+f"(sum[43]), "+f"(sum[44]), "+f"(sum[45]), "+f"(sum[46]), "+f"(sum[47]), "+f"(sum[48]),
          "+f"(sum[49]), "+f"(sum[50]), "+f"(sum[51]), "+f"(sum[52]), "+f"(sum[53]), "+f"(sum[54]), "+f"(sum[55]), "+f"(sum[56]),
          "+f"(sum[57]), "+f"(sum[58]), "+f"(sum[59]), "+f"(sum[60]), "+f"(sum[61]), "+f"(sum[62]), "+f"(sum[63])
        : "l"(a), "l"(b), "r"(int(add)));
}

// Eight read-write register operands of an asm statement, from sum[i] on.
#define EIGHT_SUMS(i)                                                                                                         \
    "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3]), "+f"(sum[i + 4]), "+f"(sum[i + 5]), "+f"(sum[i + 6]), \
        "+f"(sum[i + 7])

// Starts the same product with b 176 x 16 and 64 x 176 sums. PTX ISA 9.7.15.5.2, wgmma.mma_async m64n176k16.
// A product takes 88 cycles: 2 x 64 x 176 x 16 FLOP at 4096 FLOP per cycle per SM.
__device__ inline void wgmma_64x176x16(float (&sum)[88], uint64_t a, uint64_t b, bool add) {
    asm volatile(
        "{\n"
        "  .reg .pred add;\n"
        "  setp.ne.b32 add, %90, 0;\n"
        "  wgmma.mma_async.sync.aligned.m64n176k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
        "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
        "%80, %81, %82, %83, %84, %85, %86, %87"
        "}, %88, %89, add, 1, 1, 0, 0;\n"
        "}"
        : EIGHT_SUMS(0), EIGHT_SUMS(8), EIGHT_SUMS(16), EIGHT_SUMS(24), EIGHT_SUMS(32), EIGHT_SUMS(40), EIGHT_SUMS(48), EIGHT_SUMS(56),
          EIGHT_SUMS(64), EIGHT_SUMS(72), EIGHT_SUMS(80)
        : "l"(a), "l"(b), "r"(int(add)));
}

// Starts the same product with b 192 x 16 and 64 x 192 sums. PTX ISA 9.7.15.5.2, wgmma.mma_async m64n192k16.
// A product takes 96 cycles, and reads 6 KiB of b and 2 KiB of a from shared memory: 2 x 64 x 192 x 16 FLOP at 4096 FLOP per cycle per SM.
__device__ inline void wgmma_64x192x16(float (&sum)[96], uint64_t a, uint64_t b, bool add) {
    asm volatile(
        "{\n"
        "  .reg .pred add;\n"
        "  setp.ne.b32 add, %98, 0;\n"
        "  wgmma.mma_async.sync.aligned.m64n192k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
        "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
        "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
        "}, %96, %97, add, 1, 1, 0, 0;\n"
        "}"
        : EIGHT_SUMS(0), EIGHT_SUMS(8), EIGHT_SUMS(16), EIGHT_SUMS(24), EIGHT_SUMS(32), EIGHT_SUMS(40), EIGHT_SUMS(48), EIGHT_SUMS(56),
          EIGHT_SUMS(64), EIGHT_SUMS(72), EIGHT_SUMS(80), EIGHT_SUMS(88)
        : "l"(a), "l"(b), "r"(int(add)));
}

// Starts the same product with b 256 x 16 and 64 x 256 sums, the widest shape. PTX ISA 9.7.15.5.2, wgmma.mma_async m64n256k16.
// A product takes 128 cycles, and reads 8 KiB of b and 2 KiB of a from shared memory: 2 x 64 x 256 x 16 FLOP at 4096 FLOP per cycle per SM.
__device__ inline void wgmma_64x256x16(float (&sum)[128], uint64_t a, uint64_t b, bool add) {
    asm volatile(
        "{\n"
        "  .reg .pred add;\n"
        "  setp.ne.b32 add, %130, 0;\n"
        "  wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
        "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
        "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
        "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
        "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
        "}, %128, %129, add, 1, 1, 0, 0;\n"
        "}"
        : EIGHT_SUMS(0), EIGHT_SUMS(8), EIGHT_SUMS(16), EIGHT_SUMS(24), EIGHT_SUMS(32), EIGHT_SUMS(40), EIGHT_SUMS(48), EIGHT_SUMS(56),
          EIGHT_SUMS(64), EIGHT_SUMS(72), EIGHT_SUMS(80), EIGHT_SUMS(88), EIGHT_SUMS(96), EIGHT_SUMS(104), EIGHT_SUMS(112), EIGHT_SUMS(120)
        : "l"(a), "l"(b), "r"(int(add)));
}

// Starts sum += a b with a in registers and b MN-major: 64 x 16 bf16 of a, 16 x 128 of b. PTX ISA 9.7.15.5.2, wgmma.mma_async m64n128k16.
// PTX ISA 9.7.15.5.1.1: a[2 j + i] of thread t holds row 16 (t / 32) + (t % 32) / 4 + 8 i, columns 8 j + 2 (t % 4) and the next.
// Another product's sums lie there too, so rounded in pairs they are operands. b is a wgmma_rows_operand. Until the wait, a stays.
__device__ inline void wgmma_64x128x16(float (&sum)[64], const uint32_t* a, uint64_t b) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
        "}, {%64, %65, %66, %67}, %68, 1, 1, 1, 1;"
        : EIGHT_SUMS(0), EIGHT_SUMS(8), EIGHT_SUMS(16), EIGHT_SUMS(24), EIGHT_SUMS(32), EIGHT_SUMS(40), EIGHT_SUMS(48), EIGHT_SUMS(56)
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
#undef EIGHT_SUMS

// Keeps the compiler from moving accesses to the sums, or to memory, across this point. Emits no instruction; any architecture.
// The empty asm statements claim to read and write every sum, or every pair of bf16 that is an operand.
template <int SUMS>
__device__ inline void hold(float (&sum)[SUMS]) {
#pragma unroll
    for (int i = 0; i < SUMS; i++) asm volatile("" : "+f"(sum[i])::"memory");
}
template <int PAIRS>
__device__ inline void hold(uint32_t (&pair)[PAIRS]) {
#pragma unroll
    for (int i = 0; i < PAIRS; i++) asm volatile("" : "+r"(pair[i])::"memory");
}

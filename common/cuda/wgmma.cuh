// Hopper's tensor cores (wgmma): a warpgroup multiplies two tiles that lie in shared memory, and keeps the sums in its registers.
#pragma once
#include <cstdint>

#include "common/cuda/operands.cuh"

// PTX ISA 9.7.15.7.1, wgmma.fence: orders what the warpgroup did to its sums before the products that follow.
__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

// PTX ISA 9.7.15.7.2, wgmma.commit_group: the products since the last commit are a group.
__device__ inline void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// PTX ISA 9.7.15.7.3, wgmma.wait_group: until at most PENDING of the newest groups still run; the operands of the others may be
// overwritten.
template <int PENDING>
__device__ inline void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// PTX ISA 9.7.15.5.2, wgmma.mma_async m64n128k16: sum (+)= a b^T with a 64 x 16 and b 128 x 16, both K-major, in bf16. 9.7.15.5.1.1: of the
// sums, 64 x 128, the thread t of the warpgroup holds sum[4 j + 2 i + e] = element (t / 32 * 16 + t % 32 / 4 + 8 i, 8 j + t % 4 * 2 + e).
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

#define EIGHT_SUMS(i)                                                                                                         \
    "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3]), "+f"(sum[i + 4]), "+f"(sum[i + 5]), "+f"(sum[i + 6]), \
        "+f"(sum[i + 7])

// PTX ISA 9.7.15.5.2, wgmma.mma_async m64n192k16: the same with b 192 x 16 and sums 64 x 192. In its 96 cycles it reads 6 KB of b and 2 KB
// of a.
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

// PTX ISA 9.7.15.5.2, wgmma.mma_async m64n256k16: the same with b 256 x 16 and sums 64 x 256, the widest product. In its 128 cycles it
// reads 8 KB of b and 2 KB of a.
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
#undef EIGHT_SUMS

// Nothing of the sums is moved by the compiler from one side of this to the other; it costs no instruction.
template <int SUMS>
__device__ inline void hold(float (&sum)[SUMS]) {
#pragma unroll
    for (int i = 0; i < SUMS; i++) asm volatile("" : "+f"(sum[i])::"memory");
}

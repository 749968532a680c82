// One kernel an instruction or a trap; compiled to a cubin and read, never run.
#include <cstdint>
#include <cuda_bf16.h>
#include "shared_tile.cuh"

#define KERNEL extern "C" __global__ void

// Traps that every architecture has.
KERNEL constants(float* y) {
    for (int i = 0; i < 4; i++) y[i] = 1.5f + i;  // HFMA2 without a type loads one of them
}
KERNEL bf16_math(__nv_bfloat162* y) { y[0] = __hfma2(y[1], y[2], y[3]); }
KERNEL arrive(int* y) {
    __shared__ uint64_t barrier;
    const uint32_t at = shared_address(&barrier);
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 32;" ::"r"(at) : "memory");
    __syncthreads();
    asm volatile("{ .reg .b64 t; mbarrier.arrive.shared::cta.b64 t, [%0]; }" ::"r"(at) : "memory");
    asm volatile("{ .reg .pred p; again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0; @!p bra again; }" ::"r"(at) : "memory");
    y[0] = 1;
}
KERNEL generic_load(float* y, int which) {
    __shared__ float here[32];
    here[threadIdx.x] = y[threadIdx.x];
    __syncthreads();
    const float* from = which ? here : y + 32;
    y[threadIdx.x + 64] = *from;
}
KERNEL cluster_load(float* y, int rank) {
    __shared__ float here[32];
    here[threadIdx.x] = y[threadIdx.x];
    asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
    uint64_t there;
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(&here[threadIdx.x]), "r"(rank));
    y[threadIdx.x + 64] = *reinterpret_cast<volatile float*>(there);
}
KERNEL bulk_store(float* y) {
    __shared__ alignas(16) float here[4];
    here[threadIdx.x] = threadIdx.x;
    __syncthreads();
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 16;" ::"l"(y), "r"(shared_address(here)) : "memory");
    asm volatile("cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;" ::: "memory");
}
KERNEL cp_async(const float* x, float* y) {
    __shared__ alignas(16) float here[128];
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(here + 4 * threadIdx.x)), "l"(x + 4 * threadIdx.x)
                 : "memory");
    asm volatile("cp.async.commit_group; cp.async.wait_group 0;" ::: "memory");
    y[threadIdx.x] = here[127 - threadIdx.x];
}
KERNEL asleep(float* y) {
    __nanosleep(100);
    y[0] = 1;
}
KERNEL warp_sum(float* y) {
    float sum = y[threadIdx.x];
    for (int distance = 16; distance; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
    y[threadIdx.x] = sum;
}

// Hopper's tensor cores: one warpgroup, 64 x 8 x 16, from two descriptors.
KERNEL __launch_bounds__(128, 1) hopper(uint64_t a, uint64_t b, float* y) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    float sum[4] = {};
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    asm volatile("wgmma.fence.sync.aligned;");
    asm volatile("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %5, 1, 1, 1, 0, 0;"
                 : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
                 : "l"(a), "l"(b));
    asm volatile("wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;" ::: "memory");
    for (int i = 0; i < 4; i++) y[4 * threadIdx.x + i] = sum[i];
#endif
}

// Blackwell's: a tile by TMA, a product into tensor memory, and out of it.
KERNEL blackwell(const __grid_constant__ CUtensorMap map, uint64_t a, uint64_t b, uint32_t* y) {
#ifdef __CUDA_ARCH_FEAT_SM100_ALL
    __shared__ alignas(128) float tile[TILE * TILE];
    __shared__ uint64_t loaded, done;
    __shared__ uint32_t slot;
    load_tile(tile, &loaded, &map, 0, 0);
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" ::"r"(shared_address(&slot)) : "memory");
    const uint32_t at = slot;
    asm volatile("{ .reg .pred p; setp.ne.u32 p, 0, 0; tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p; }" ::"r"(at), "l"(a), "l"(b),
                 "r"(0));
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(shared_address(&done)) : "memory");
    uint32_t word;
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=r"(word) : "r"(at));
    asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
    y[threadIdx.x] = word;
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;" ::"r"(at));
#endif
}
KERNEL wide(float* y) {
#ifdef __CUDA_ARCH_FEAT_SM100_ALL
    asm volatile("{ .reg .b64 s; fma.rn.f32x2 s, %1, %2, %2; st.global.b64 [%0], s; }" ::"l"(y), "l"(uint64_t(y[1])), "l"(uint64_t(y[2])));
#endif
}

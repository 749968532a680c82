// Optimized: cp.async brings the next pages while one is multiplied.
// predicts: baseline 219 us = context / 64 * (sequences * kv_heads * 32768 / dram_read + 0.8e-6) on h200
// predicts: optimized 119 us = context / 64 * max(sequences * kv_heads * 32768 / dram_read, 0.8e-6) + 2e-6 on h200
// proves: cp_async_16
// proves: cp_async_wait
// proves: shared_memory > 1.9 x baseline
// has: spills == 0
#include <cuda_pipeline.h>

#include "shared_page_merge.cuh"

constexpr int STAGES = 3;  // pages in shared memory: one is multiplied, two are on their way
constexpr int SHARED_BYTES = STAGES * sizeof(Page);

// A thread's copies of page `i`, if there is one: 16 bytes each, which bypass registers.
__device__ void copy(Page* stages, const Cache& x, int i) {
    if (i >= x.pages()) return;
    const int number = x.page(i);
    Page& page = stages[i % STAGES];
#pragma unroll
    for (int part = 0; part < CHUNKS / THREADS; part++) {
        const int chunk = part * THREADS + threadIdx.x;
        __pipeline_memcpy_async(&page.keys[chunk], &x.keys_of(number)[chunk], sizeof(uint4));
        __pipeline_memcpy_async(&page.values[chunk], &x.values_of(number)[chunk], sizeof(uint4));
    }
}

__global__ void __launch_bounds__(THREADS, 1) attend(Cache x) {
    extern __shared__ __align__(128) unsigned char bytes[];
    auto stages = reinterpret_cast<Page*>(bytes);
    Attention attention(x);
    for (int i = 0; i < STAGES - 1; i++) {
        copy(stages, x, i);
        __pipeline_commit();
    }
    for (int i = 0; i < x.pages(); i++) {
        __pipeline_wait_prior(STAGES - 2);
        __syncthreads();  // page i is there for all threads, and all have read the page before, whose stage is free
        copy(stages, x, i + STAGES - 1);
        __pipeline_commit();
        attention.add(stages[i % STAGES], x.context - i * PAGE);
    }
    __syncthreads();
    store(attention, x, stages);
}

PREPARE(void** state) {
    *state = nullptr;
    return cudaFuncSetAttribute(attend, cudaFuncAttributeMaxDynamicSharedMemorySize, SHARED_BYTES);
}

LAUNCH(const __nv_bfloat16* q, const __nv_bfloat16* keys, const __nv_bfloat16* values, const int* table, float* out, int sequences,
       int kv_heads, int context, cudaStream_t stream) {
    const Cache cache{q, keys, values, table, out, context, kv_heads};
    if (cudaError_t error = cache.check()) return error;
    attend<<<sequences * kv_heads, THREADS, SHARED_BYTES, stream>>>(cache);
    return cudaGetLastError();
}

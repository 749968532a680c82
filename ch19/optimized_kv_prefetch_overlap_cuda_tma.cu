// Optimized: one thread has the TMA bring the next pages.
// predicts: baseline 219 us = context / 64 * (sequences * kv_heads * 32768 / dram_read + 0.8e-6) on h200
// predicts: optimized 119 us = context / 64 * max(sequences * kv_heads * 32768 / dram_read, 0.8e-6) + 2e-6 on h200
// needs: tma
// instead: ch19:kv_prefetch_overlap_cuda
// proves: tma_load_tile
// proves: mbarrier_expect_tx
// proves: shared_memory > 1.9 x baseline
// has: spills == 0
#include "common/cuda/mbarrier.cuh"
#include "common/cuda/tma.cuh"
#include "shared_page_merge.cuh"

constexpr int STAGES = 3;  // pages in shared memory: one is multiplied, two are on their way

struct Shared {
    Page stages[STAGES];
    uint64_t full[STAGES];  // a phase completes when the TMA has written a page
};

// One thread asks for page `i`, if there is one.
__device__ void load(Shared& shared, const CUtensorMap& keys, const CUtensorMap& values, const Cache& x, int i) {
    if (threadIdx.x != 0 || i >= x.pages()) return;
    const int first = x.page(i) * PAGE, stage = i % STAGES;
    barrier_expect(&shared.full[stage], sizeof(Page));
    load_tile(shared.stages[stage].keys, &keys, 0, first, &shared.full[stage]);
    load_tile(shared.stages[stage].values, &values, 0, first, &shared.full[stage]);
}

__global__ void __launch_bounds__(THREADS, 1)
    attend(const __grid_constant__ CUtensorMap keys, const __grid_constant__ CUtensorMap values, Cache x) {
    extern __shared__ __align__(128) unsigned char bytes[];
    auto& shared = *reinterpret_cast<Shared*>(bytes);
    if (threadIdx.x == 0)
        for (uint64_t& barrier : shared.full) barrier_init(&barrier, 1);
    for (int i = 0; i < STAGES; i++) load(shared, keys, values, x, i);
    Attention attention(x);
    __syncthreads();  // the barriers are initialized
    for (int i = 0; i < x.pages(); i++) {
        barrier_wait(&shared.full[i % STAGES], i / STAGES % 2);
        attention.add(shared.stages[i % STAGES], x.context - i * PAGE);
        __syncthreads();  // all threads have read the page, so its stage is free
        load(shared, keys, values, x, i + STAGES);
    }
    store(attention, x, shared.stages);
}

PREPARE(void** state) {
    *state = nullptr;
    return cudaFuncSetAttribute(attend, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared));
}

LAUNCH(const __nv_bfloat16* q, const __nv_bfloat16* keys, const __nv_bfloat16* values, const int* table, float* out, int sequences,
       int kv_heads, int context, cudaStream_t stream) {
    const Cache cache{q, keys, values, table, out, context, kv_heads};
    if (cudaError_t error = cache.check()) return error;
    const int rows = sequences * cache.pages() * kv_heads * PAGE;
    CUtensorMap key_map, value_map;
    if (cudaError_t error = encode(&key_map, Tiled<Element>{keys, rows, DIM, PAGE, DIM})) return error;
    if (cudaError_t error = encode(&value_map, Tiled<Element>{values, rows, DIM, PAGE, DIM})) return error;
    attend<<<sequences * kv_heads, THREADS, sizeof(Shared), stream>>>(key_map, value_map, cache);
    return cudaGetLastError();
}

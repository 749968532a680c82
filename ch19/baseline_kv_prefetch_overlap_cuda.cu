// Baseline: a page of keys and values is loaded, and then multiplied.
// has: ld_128bit
// has: spills == 0
#include "shared_page_merge.cuh"

__global__ void __launch_bounds__(THREADS, 1) attend(Cache x) {
    __shared__ Page page;
    Attention attention(x);
    for (int i = 0; i < x.pages(); i++) {
        const int number = x.page(i);
        __syncthreads();  // all threads have read the page before
#pragma unroll
        for (int part = 0; part < CHUNKS / THREADS; part++) {
            const int chunk = part * THREADS + threadIdx.x;
            page.keys[chunk] = x.keys_of(number)[chunk];
            page.values[chunk] = x.values_of(number)[chunk];
        }
        __syncthreads();
        attention.add(page, x.context - i * PAGE);
    }
    __syncthreads();
    store(attention, x, &page);
}

LAUNCH(const __nv_bfloat16* q, const __nv_bfloat16* keys, const __nv_bfloat16* values, const int* table, float* out, int sequences,
       int kv_heads, int context, cudaStream_t stream) {
    const Cache cache{q, keys, values, table, out, context, kv_heads};
    if (cudaError_t error = cache.check()) return error;
    attend<<<sequences * kv_heads, THREADS, 0, stream>>>(cache);
    return cudaGetLastError();
}

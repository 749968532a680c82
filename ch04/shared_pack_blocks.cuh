// Gathers the blocks of one request from a paged KV cache into one buffer, which can be sent at once.
#pragma once
#include <cuda_bf16.h>

#include "common/cuda/launch.cuh"

constexpr int THREADS = 256;

// Block i of `packed` is block table[i] of `cache`; a block has `elements` values. One block of threads each.
__global__ void pack(const __nv_bfloat16* cache, const int* table, __nv_bfloat16* packed, int elements) {
    const __nv_bfloat16* from = cache + size_t(table[blockIdx.x]) * elements;
    __nv_bfloat16* to = packed + size_t(blockIdx.x) * elements;
    for (int i = threadIdx.x; i < elements; i += THREADS) to[i] = from[i];
}

// A cache of keys and values in pages, and the page that a block has in shared memory. A block has a sequence's four query heads that
// share a head of keys. Eight threads share a token, so a block multiplies 32 tokens at a time.
#pragma once
#include <cuda_bf16.h>

#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"

constexpr int DIM = 128, PAGE = 64;  // of a head; tokens of a page
constexpr int GROUP = 4;             // query heads that share a head of keys
constexpr int THREADS = 256, WARPS = THREADS / 32;
constexpr int LANES = 8;                           // threads that share a token
constexpr int ROUNDS = PAGE * LANES / THREADS;     // tokens of a page that a thread takes part in
constexpr int OWN = DIM / LANES;                   // dimensions of a thread
constexpr int ROW = DIM / 8, CHUNKS = PAGE * ROW;  // chunks of 16 bytes, eight values each: of a token, and of a page's keys

using Element = __nv_bfloat16;

struct alignas(128) Page {
    uint4 keys[CHUNKS], values[CHUNKS];
};

// q [sequences, kv_heads x GROUP, DIM]; keys and values [pages, kv_heads, PAGE, DIM]; table [sequences, pages of one]; out as q.
// Block b has head b % kv_heads of sequence b / kv_heads.
struct Cache {
    const Element *q, *keys, *values;
    const int* table;
    float* out;
    int context, kv_heads;

    __host__ __device__ int pages() const { return ceil_div(context, PAGE); }
    // The number of the block's page `i` among the pages of all heads.
    __device__ int page(int i) const { return table[blockIdx.x / kv_heads * pages() + i] * kv_heads + int(blockIdx.x) % kv_heads; }
    __device__ const uint4* keys_of(int page) const { return reinterpret_cast<const uint4*>(keys) + size_t(page) * CHUNKS; }
    __device__ const uint4* values_of(int page) const { return reinterpret_cast<const uint4*>(values) + size_t(page) * CHUNKS; }
    cudaError_t check() const { return aligned(16, q, keys, values) ? cudaSuccess : cudaErrorMisalignedAddress; }
};

// Chunk `half` of a thread's two chunks of a token, as float32: eight threads read 128 bytes that follow one another.
__device__ inline void unpack(const uint4* row, int half, float (&to)[8]) {
    const uint4 chunk = row[LANES * half + threadIdx.x % LANES];
    const auto* pairs = reinterpret_cast<const __nv_bfloat162*>(&chunk);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const float2 pair = __bfloat1622float2(pairs[i]);
        to[2 * i] = pair.x;
        to[2 * i + 1] = pair.y;
    }
}

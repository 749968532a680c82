// Decode attention over pages of keys and values: what a block computes of a page that lies in shared memory. A block has a sequence's
// four query heads that share a head of keys. Eight threads share a token, so a block multiplies 32 tokens at a time.
#pragma once
#include <cuda_bf16.h>

#include <cmath>

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

// q [sequences, kv_heads x GROUP, DIM]; keys and values [pages, kv_heads, PAGE, DIM]; table [sequences, pages of one]; out as q. Block b has
// head b % kv_heads of sequence b / kv_heads.
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

// What a thread holds of the four heads: of the tokens that it saw, the largest score, the sum of shares, and its part of the sum of values.
struct Attention {
    float query[GROUP][OWN], sums[GROUP][OWN] = {}, top[GROUP], total[GROUP] = {};

    __device__ explicit Attention(const Cache& x) {
        const float unit = 1.44269504f / sqrtf(float(DIM));  // scores are exponents of 2
#pragma unroll
        for (int head = 0; head < GROUP; head++) {
            top[head] = -1e30f;
#pragma unroll
            for (int half = 0; half < 2; half++) {
                float values[8];
                unpack(reinterpret_cast<const uint4*>(x.q) + (size_t(blockIdx.x) * GROUP + head) * ROW, half, values);
#pragma unroll
                for (int i = 0; i < 8; i++) query[head][8 * half + i] = values[i] * unit;
            }
        }
    }
    // Adds a page, of which the first `tokens` count.
    __device__ void add(const Page& page, int tokens) {
        float scores[ROUNDS][GROUP] = {};
#pragma unroll
        for (int round = 0; round < ROUNDS; round++) {
            const int token = round * (THREADS / LANES) + int(threadIdx.x) / LANES;
            dot(page.keys + token * ROW, scores[round]);
#pragma unroll
            for (int head = 0; head < GROUP; head++) scores[round][head] = token < tokens ? scores[round][head] : -INFINITY;
        }
#pragma unroll
        for (int head = 0; head < GROUP; head++) {
            float now = top[head];
#pragma unroll
            for (int round = 0; round < ROUNDS; round++) now = fmaxf(now, scores[round][head]);
            fade(head, exp2f(top[head] - now));
            top[head] = now;
#pragma unroll
            for (int round = 0; round < ROUNDS; round++) total[head] += scores[round][head] = exp2f(scores[round][head] - now);
        }
#pragma unroll
        for (int round = 0; round < ROUNDS; round++) {
            const int token = round * (THREADS / LANES) + int(threadIdx.x) / LANES;
            if (token < tokens) add_values(page.values + token * ROW, scores[round]);
        }
    }
    // Merges what all threads hold, in shared memory that nobody uses any more, and stores the block's four heads.
    __device__ void store(const Cache& x, void* shared) {
        float* heads = static_cast<float*>(shared);  // [WARPS][GROUP][DIM], then tops and totals [2][WARPS][GROUP]
        float *tops = heads + WARPS * GROUP * DIM, *totals = tops + WARPS * GROUP;
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
        for (int head = 0; head < GROUP; head++) {
            merge(head, LANES);
            merge(head, 2 * LANES);
            if (lane < LANES) {
#pragma unroll
                for (int i = 0; i < OWN; i++) heads[(warp * GROUP + head) * DIM + i / 8 * (DIM / 2) + lane * 8 + i % 8] = sums[head][i];
            }
            if (lane == 0) {
                tops[warp * GROUP + head] = top[head];
                totals[warp * GROUP + head] = total[head];
            }
        }
        __syncthreads();
        for (int i = threadIdx.x; i < GROUP * DIM; i += THREADS) {
            const int head = i / DIM;
            float highest = -1e30f, sum = 0, all = 0;
            for (int w = 0; w < WARPS; w++) highest = fmaxf(highest, tops[w * GROUP + head]);
            for (int w = 0; w < WARPS; w++) {
                const float part = exp2f(tops[w * GROUP + head] - highest);
                sum += part * heads[w * GROUP * DIM + i];
                all += part * totals[w * GROUP + head];
            }
            x.out[size_t(blockIdx.x) * GROUP * DIM + i] = sum / all;
        }
    }

  private:
    // Adds the products of a token's keys with all queries, summed over the threads that share the token.
    __device__ void dot(const uint4* row, float (&scores)[GROUP]) const {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float keys[8];
            unpack(row, half, keys);
#pragma unroll
            for (int head = 0; head < GROUP; head++) {
#pragma unroll
                for (int i = 0; i < 8; i++) scores[head] += query[head][8 * half + i] * keys[i];
            }
        }
#pragma unroll
        for (int head = 0; head < GROUP; head++) {
#pragma unroll
            for (int other = 1; other < LANES; other *= 2) scores[head] += __shfl_xor_sync(~0u, scores[head], other);
        }
    }
    __device__ void add_values(const uint4* row, const float (&shares)[GROUP]) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float values[8];
            unpack(row, half, values);
#pragma unroll
            for (int head = 0; head < GROUP; head++) {
#pragma unroll
                for (int i = 0; i < 8; i++) sums[head][8 * half + i] += shares[head] * values[i];
            }
        }
    }
    __device__ void fade(int head, float factor) {
        total[head] *= factor;
#pragma unroll
        for (int i = 0; i < OWN; i++) sums[head][i] *= factor;
    }
    // Adds what the thread `other` lanes away holds of the same dimensions.
    __device__ void merge(int head, int other) {
        const float now = fmaxf(top[head], __shfl_xor_sync(~0u, top[head], other));
        fade(head, exp2f(top[head] - now));
        top[head] = now;
        total[head] += __shfl_xor_sync(~0u, total[head], other);
#pragma unroll
        for (int i = 0; i < OWN; i++) sums[head][i] += __shfl_xor_sync(~0u, sums[head][i], other);
    }
};

static_assert(sizeof(Page) >= (WARPS * GROUP * DIM + 2 * WARPS * GROUP) * sizeof(float), "what is merged fits in a page's memory");

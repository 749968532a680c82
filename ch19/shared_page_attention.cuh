// Decode attention over pages of keys and values: what a thread computes of a page that lies in shared memory.
#pragma once
#include <cmath>

#include "shared_cache_pages.cuh"

// What a thread holds of four query heads: of the tokens that it saw, the largest score, the sum of shares, its part of the sum of values.
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
    // All that was added so far, of a head, times `factor`.
    __device__ void fade(int head, float factor) {
        total[head] *= factor;
#pragma unroll
        for (int i = 0; i < OWN; i++) sums[head][i] *= factor;
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
};

// What the threads of a block hold of four query heads, each of other tokens or dimensions, becomes their answers.
#pragma once
#include "shared_page_attention.cuh"

// Adds what the thread `other` lanes away holds of the same dimensions.
__device__ inline void merge(Attention& mine, int head, int other) {
    const float now = fmaxf(mine.top[head], __shfl_xor_sync(~0u, mine.top[head], other));
    mine.fade(head, exp2f(mine.top[head] - now));
    mine.top[head] = now;
    mine.total[head] += __shfl_xor_sync(~0u, mine.total[head], other);
#pragma unroll
    for (int i = 0; i < OWN; i++) mine.sums[head][i] += __shfl_xor_sync(~0u, mine.sums[head][i], other);
}

// Merges what all threads hold, in shared memory that nobody uses any more, and stores the block's four heads.
__device__ inline void store(Attention& mine, const Cache& x, void* shared) {
    float* heads = static_cast<float*>(shared);  // [WARPS][GROUP][DIM], then tops and totals [2][WARPS][GROUP]
    float *tops = heads + WARPS * GROUP * DIM, *totals = tops + WARPS * GROUP;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
    for (int head = 0; head < GROUP; head++) {
        merge(mine, head, LANES);
        merge(mine, head, 2 * LANES);
        if (lane < LANES) {
#pragma unroll
            for (int i = 0; i < OWN; i++) heads[(warp * GROUP + head) * DIM + i / 8 * (DIM / 2) + lane * 8 + i % 8] = mine.sums[head][i];
        }
        if (lane == 0) {
            tops[warp * GROUP + head] = mine.top[head];
            totals[warp * GROUP + head] = mine.total[head];
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

static_assert(sizeof(Page) >= (WARPS * GROUP * DIM + 2 * WARPS * GROUP) * sizeof(float), "what is merged fits in a page's memory");

// Attention of a decode step: a block takes a split of a head's keys, and in the next phase every block joins the splits.
#pragma once
#include "shared_phases.cuh"

constexpr int OF_KEY = DIM / VECTOR;        // lanes that share a key
constexpr int TOGETHER = THREADS / OF_KEY;  // keys that a block attends to at once: one 16-byte load a lane
constexpr int MOST_BLOCKS = 256;            // splits of all heads
constexpr int FLIGHT = 32;                  // splits that a thread loads before it adds the first
constexpr float SCALE = 0.125f;             // of scores, 1 / sqrt(DIM)

// A lane's eighth of a key and of its value.
struct Cached {
    uint4 key, value;
};

__device__ inline Cached cached(const Step& s, int layer, int unit, int k) {
    const size_t at = (size_t(layer * s.kv + unit / s.splits / (s.heads / s.kv)) * s.context + k) * DIM + lane() % OF_KEY * VECTOR;
    return {load(s.keys + at), load(s.values + at)};
}

// A block's first keys; the last slot of the cache is written in the phase before, so it is loaded behind the barrier.
__device__ inline Cached fetch_cached(const Step& s, int layer) {
    const int unit = blockIdx.x, k = unit % s.splits * s.split + threadIdx.x / OF_KEY;
    return unit < s.heads * s.splits && k < s.context - 1 ? cached(s, layer, unit, k) : Cached{};
}

// A block: one head's attention to `split` keys. Eight lanes have a key, and keep the sums of the keys that they have had.
__device__ inline void attend(const Step& s, int layer, Cached now) {
    __shared__ __align__(16) float sums[TOGETHER][DIM];
    __shared__ float highest[TOGETHER], weights[TOGETHER];
    const int group = threadIdx.x / OF_KEY, column = lane() % OF_KEY * VECTOR;
    for (int unit = blockIdx.x; unit < s.heads * s.splits; unit += gridDim.x) {
        const int first = unit % s.splits * s.split, end = min(first + s.split, s.context);
        const float* q = s.q + unit / s.splits * DIM + column;
        float most = -INFINITY, weight = 0, sum[VECTOR] = {};
        for (int base = first; base < end; base += TOGETHER) {
            const int k = base + group;
            if (k < end && (k == s.context - 1 || base > first || unit != blockIdx.x)) now = cached(s, layer, unit, k);
            float score = eight(now.key, q);
            for (int step = OF_KEY / 2; step > 0; step /= 2) score += __shfl_xor_sync(~0u, score, step);
            if (k >= end) continue;
            const float higher = fmaxf(most, score * SCALE), kept = __expf(most - higher), share = __expf(score * SCALE - higher);
            const auto pairs = reinterpret_cast<const __nv_bfloat162*>(&now.value);
#pragma unroll
            for (int p = 0; p < VECTOR / 2; p++) {
                const float2 v = __bfloat1622float2(pairs[p]);
                sum[2 * p] = sum[2 * p] * kept + share * v.x, sum[2 * p + 1] = sum[2 * p + 1] * kept + share * v.y;
            }
            weight = weight * kept + share, most = higher;
        }
        for (int v = 0; v < VECTOR; v += 4)
            *reinterpret_cast<float4*>(&sums[group][column + v]) = make_float4(sum[v], sum[v + 1], sum[v + 2], sum[v + 3]);
        if (column == 0) highest[group] = most, weights[group] = weight;
        __syncthreads();
        if (threadIdx.x < DIM) {  // two warps, whose lanes are the groups first, then columns
            const float of_all = warp_max(highest[lane()]), factor = __expf(highest[lane()] - of_all);
            float all = 0;
#pragma unroll
            for (int g = 0; g < TOGETHER; g++) all += __shfl_sync(~0u, factor, g) * sums[g][threadIdx.x];
            const float total = warp_sum(factor * weights[lane()]);
            s.sums[size_t(unit) * DIM + threadIdx.x] = all;
            if (threadIdx.x == 0) s.stats[unit] = make_float2(of_all, total);
        }
        __syncthreads();
    }
}

// h becomes what attention says, of all splits, in every block. Sums and statistics of splits are loaded together.
__device__ inline void merge(float* h, const Step& s) {
    __shared__ float share[MOST_BLOCKS];
    for (int first = 0; first < s.heads * DIM; first += THREADS) {
        const int i = first + threadIdx.x;
        const float* of = s.sums + size_t(i / DIM) * s.splits * DIM + i % DIM;
        float part[FLIGHT];
#pragma unroll
        for (int k = 0; k < FLIGHT; k++) part[k] = i < s.heads * DIM && k < s.splits ? of[size_t(k) * DIM] : 0;
#pragma unroll 1
        for (int head = threadIdx.x / LANES; first == 0 && head < s.heads; head += WARPS) {
            float most = -INFINITY, weight = 0;
#pragma unroll 1
            for (int k = lane(); k < s.splits; k += LANES) most = fmaxf(most, s.stats[head * s.splits + k].x);
            most = warp_max(most);
#pragma unroll 1
            for (int k = lane(); k < s.splits; k += LANES) {
                const float2 split = s.stats[head * s.splits + k];
                weight += (share[head * s.splits + k] = __expf(split.x - most)) * split.y;
            }
            weight = 1 / warp_sum(weight);
#pragma unroll 1
            for (int k = lane(); k < s.splits; k += LANES) share[head * s.splits + k] *= weight;
        }
        if (first == 0) __syncthreads();
        if (i >= s.heads * DIM) continue;
        const float* of_head = share + i / DIM * s.splits;
        float sum = 0;
#pragma unroll
        for (int k = 0; k < FLIGHT; k++)
            if (k < s.splits) sum += of_head[k] * part[k];
#pragma unroll 4
        for (int k = FLIGHT; k < s.splits; k++) sum += of_head[k] * of[size_t(k) * DIM];
        h[i] = sum;
    }
    __syncthreads();
}

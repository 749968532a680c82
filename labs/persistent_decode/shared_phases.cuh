// What blocks do between two barriers of a decode step; warps share out rows, and every block normalizes for itself.
#pragma once
#include <cuda_bf16.h>

#include "common/cuda/launch.cuh"

using Element = __nv_bfloat16;
constexpr int THREADS = 256, LANES = 32, WARPS = THREADS / LANES;
constexpr int DIM = 64, HALF = DIM / 2;       // of a head
constexpr int SPLIT = 64, PARTIAL = DIM + 2;  // keys that a warp attends to; what it leaves: sums, their maximum and their weight
constexpr int MOST = 1024;                    // columns of a product
constexpr float EPS = 1e-5f, SCALE = 0.125f;  // of the norm; of scores, 1 / sqrt(DIM)

struct Step {
    const int* token;
    const Element *embedding, *qkv, *o, *gate_up, *down, *norms, *last_norm;
    const float* turn;
    Element *keys, *values, *logits;
    float *x, *q, *partial, *act;
    int* arrived;
    int layers, hidden, heads, kv, inner, vocabulary, context;
};

__device__ inline float warp_sum(float v) {
    for (int step = LANES / 2; step > 0; step /= 2) v += __shfl_xor_sync(~0u, v, step);
    return v;
}

// The sum over 8 weights, 16 bytes, times `v`.
__device__ inline float eight(const Element* weights, const float* v) {
    const uint4 loaded = *reinterpret_cast<const uint4*>(weights);
    const auto pairs = reinterpret_cast<const __nv_bfloat162*>(&loaded);
    float sum = 0;
#pragma unroll
    for (int p = 0; p < 4; p++) sum += __low2float(pairs[p]) * v[2 * p] + __high2float(pairs[p]) * v[2 * p + 1];
    return sum;
}

// A warp's product of a row of `width` weights and h; every lane gets it.
__device__ inline float dot(const Element* row, const float* h, int width) {
    float sum = 0;
    for (int c = threadIdx.x % LANES * 8; c < width; c += LANES * 8) sum += eight(row + c, h + c);
    return warp_sum(sum);
}

// The residual stream: the token's embedding until the first attention has been added.
__device__ inline float residual(const Step& s, int i, bool begun) {
    return begun ? s.x[i] : __bfloat162float(s.embedding[size_t(*s.token) * s.hidden + i]);
}

// h becomes the norm of the residual stream, in every block.
__device__ inline void normalize(float* h, const Step& s, const Element* norm, bool begun) {
    __shared__ float sums[WARPS];
    float sum = 0;
    for (int i = threadIdx.x; i < s.hidden; i += THREADS) h[i] = residual(s, i, begun), sum += h[i] * h[i];
    sum = warp_sum(sum);
    if (threadIdx.x % LANES == 0) sums[threadIdx.x / LANES] = sum;
    __syncthreads();
    sum = 0;
    for (float part : sums) sum += part;
    const float scale = rsqrtf(sum / s.hidden + EPS);
    for (int i = threadIdx.x; i < s.hidden; i += THREADS) h[i] *= scale * __bfloat162float(norm[i]);
    __syncthreads();
}

// Columns i and i + 32 of a head: a query to q; a key or a value to the last slot of the cache.
__device__ inline void project(const Step& s, const float* h, int layer, int pair) {
    const int head = pair / HALF, i = pair % HALF, all = s.heads + 2 * s.kv;
    const Element* row = s.qkv + (size_t(layer) * all * DIM + head * DIM + i) * s.hidden;
    float first = dot(row, h, s.hidden), second = dot(row + size_t(HALF) * s.hidden, h, s.hidden);
    if (threadIdx.x % LANES) return;
    if (head < s.heads + s.kv) {
        const float cosine = s.turn[i], sine = s.turn[HALF + i], turned = first * cosine - second * sine;
        second = second * cosine + first * sine, first = turned;
    }
    if (head < s.heads) {
        s.q[head * DIM + i] = first, s.q[head * DIM + HALF + i] = second;
    } else {
        const int slot = (head - s.heads) % s.kv;
        Element* to = (head < s.heads + s.kv ? s.keys : s.values) + (size_t(layer * s.kv + slot + 1) * s.context - 1) * DIM;
        to[i] = __float2bfloat16(first), to[HALF + i] = __float2bfloat16(second);
    }
}

// A warp: one head's attention to SPLIT keys. A lane has two keys, then two columns of all values.
__device__ inline void attend(const Step& s, int layer, int unit, int splits) {
    const int head = unit / splits, first = unit % splits * SPLIT, lane = threadIdx.x % LANES, count = min(SPLIT, s.context - first);
    const size_t at = (size_t(layer * s.kv + head / (s.heads / s.kv)) * s.context + first) * DIM;
    float score[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int k = 0; k < 2; k++) {
        if (lane + k * LANES >= count) continue;
        score[k] = 0;
        for (int c = 0; c < DIM; c += 8) score[k] += eight(s.keys + at + (lane + k * LANES) * DIM + c, s.q + head * DIM + c);
        score[k] *= SCALE;
    }
    float most = fmaxf(score[0], score[1]);
    for (int step = LANES / 2; step > 0; step /= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, step));
    const float share[2] = {__expf(score[0] - most), __expf(score[1] - most)}, weight = warp_sum(share[0] + share[1]);
    float2 sum = {0, 0};
#pragma unroll 8
    for (int k = 0; k < count; k++) {
        const float part = __shfl_sync(~0u, k < LANES ? share[0] : share[1], k % LANES);
        const float2 v = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(s.values + at + k * DIM + 2 * lane));
        sum.x += part * v.x, sum.y += part * v.y;
    }
    float* to = s.partial + size_t(unit) * PARTIAL;
    to[2 * lane] = sum.x, to[2 * lane + 1] = sum.y;
    if (lane == 0) to[DIM] = most, to[DIM + 1] = weight;
}

// h becomes what attention says, of all splits, in every block.
__device__ inline void merge(float* h, const Step& s, int splits) {
    for (int i = threadIdx.x; i < s.heads * DIM; i += THREADS) {
        const float* of = s.partial + size_t(i / DIM) * splits * PARTIAL;
        float most = -INFINITY, sum = 0, weight = 0;
        for (int k = 0; k < splits; k++) most = fmaxf(most, of[k * PARTIAL + DIM]);
        for (int k = 0; k < splits; k++) {
            const float part = __expf(of[k * PARTIAL + DIM] - most);
            sum += part * of[k * PARTIAL + i % DIM], weight += part * of[k * PARTIAL + DIM + 1];
        }
        h[i] = sum / weight;
    }
    __syncthreads();
}

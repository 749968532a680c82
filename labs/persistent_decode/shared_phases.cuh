// What blocks do between two barriers of a decode step, in two halves: `fetch` needs nothing of other blocks, so it comes before the wait.
#pragma once
#include <cuda_bf16.h>

#include "common/cuda/launch.cuh"
#include "shared_barrier.cuh"

using Element = __nv_bfloat16;
constexpr int THREADS = 256, LANES = 32, WARPS = THREADS / LANES;
constexpr int DIM = 64, HALF = DIM / 2;          // of a head
constexpr int VECTOR = 8;                        // elements of a 16-byte load
constexpr int MOST = 1024;                       // columns of a product
constexpr int PIECES = MOST / (LANES * VECTOR);  // loads of a lane for one row
constexpr int EACH = MOST / THREADS;             // columns of a thread
constexpr float EPS = 1e-5f;

struct Step {
    const int* token;
    const Element *embedding, *qkv, *o, *gate_up, *down, *norms, *last_norm;
    const float* turn;
    Element *keys, *values, *logits;
    float *x, *q, *sums, *act;
    float2* stats;  // of a split: the highest score, and the sum of weights
    int layers, hidden, heads, kv, inner, vocabulary, context;
    int split, splits;  // keys of a split, a multiple of TOGETHER; splits of a head
};

__device__ inline int lane() { return threadIdx.x % LANES; }
__device__ inline int warps() { return WARPS * gridDim.x; }
__device__ inline int warp() { return threadIdx.x / LANES * gridDim.x + blockIdx.x; }  // neighbours are in different blocks

__device__ inline float warp_sum(float v) {
    for (int step = LANES / 2; step > 0; step /= 2) v += __shfl_xor_sync(~0u, v, step);
    return v;
}
__device__ inline float warp_max(float v) {
    for (int step = LANES / 2; step > 0; step /= 2) v = fmaxf(v, __shfl_xor_sync(~0u, v, step));
    return v;
}

__device__ inline uint4 load(const Element* from) { return *reinterpret_cast<const uint4*>(from); }

// The sum over 8 weights times `v`, which is aligned to 16 bytes.
__device__ inline float eight(const uint4& weights, const float* v) {
    const auto pairs = reinterpret_cast<const __nv_bfloat162*>(&weights);
    const float4 first = *reinterpret_cast<const float4*>(v), second = *reinterpret_cast<const float4*>(v + 4);
    const float2 a = __bfloat1622float2(pairs[0]), b = __bfloat1622float2(pairs[1]);
    const float2 c = __bfloat1622float2(pairs[2]), d = __bfloat1622float2(pairs[3]);
    return (a.x * first.x + a.y * first.y + b.x * first.z + b.y * first.w) +
           (c.x * second.x + c.y * second.y + d.x * second.z + d.y * second.w);
}

// A matrix that warps share out. Unit u is ROWS rows, `apart` from each other; one row of one matrix, or a pair of a rotation or a gate.
template <int ROWS>
struct Product {
    const Element* weights;
    int units, width, apart = 1;
    const float* onto = nullptr;  // the residual stream, of which this warp alone changes element u

    __device__ const Element* first(int u) const { return weights + size_t(ROWS == 1 ? u : u + u / apart * apart) * width; }
};

// A lane's share of a unit, in registers: all loads are in flight before the first is used.
template <int ROWS>
struct Weights {
    uint4 piece[ROWS][PIECES];
    float before = 0;
};

template <int ROWS>
__device__ inline Weights<ROWS> fetch(const Product<ROWS>& product, int u) {
    Weights<ROWS> w = {};  // whole, so that no register keeps an older unit
    if (u >= product.units) return w;
    const Element* first = product.first(u);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
#pragma unroll
        for (int p = 0; p < PIECES; p++) {
            const int column = (p * LANES + lane()) * VECTOR;
            if (column < product.width) w.piece[r][p] = load(first + size_t(r) * product.apart * product.width + column);
        }
    }
    if (product.onto) w.before = product.onto[u];
    return w;
}

// Products of h with this warp's units, the first of which has been fetched. One lane uses the sums of each.
template <int ROWS, typename Use>
__device__ inline void multiply(Weights<ROWS>& w, const Product<ROWS>& product, const float* h, Use use) {
    for (int u = warp(); u < product.units; u += warps()) {
        float sum[ROWS] = {};
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
#pragma unroll
            for (int p = 0; p < PIECES; p++) {
                const int column = (p * LANES + lane()) * VECTOR;
                if (column < product.width) sum[r] += eight(w.piece[r][p], h + column);
            }
            sum[r] = warp_sum(sum[r]);
        }
        const float before = w.before;
        w = fetch(product, u + warps());
        if (lane() == 0) use(u, before, sum);
    }
}

struct Norm {
    Element weight[EACH];
};

__device__ inline Norm fetch_norm(const Element* norm, int width) {
    Norm n;
#pragma unroll
    for (int e = 0; e < EACH; e++)
        if (threadIdx.x + e * THREADS < width) n.weight[e] = norm[threadIdx.x + e * THREADS];
    return n;
}

__device__ inline float embedded(const Step& s, int i) { return __bfloat162float(s.embedding[size_t(*s.token) * s.hidden + i]); }

// h becomes the residual stream times the norm's weights, in every block. Returns the factor by which products of h are to be scaled:
// a product is linear, so the factor can wait until the sum of squares is known.
__device__ inline float normalize(float* h, const Step& s, const Norm& norm, bool begun) {
    __shared__ float squares[WARPS];
    float sum = 0;
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const int i = threadIdx.x + e * THREADS;
        if (i >= s.hidden) continue;
        const float x = begun ? s.x[i] : embedded(s, i);
        sum += x * x, h[i] = x * __bfloat162float(norm.weight[e]);
    }
    sum = warp_sum(sum);
    if (lane() == 0) squares[threadIdx.x / LANES] = sum;
    __syncthreads();
    sum = 0;
    for (float part : squares) sum += part;
    return rsqrtf(sum / s.hidden + EPS);
}

// Columns i and i + 32 of a head: a query to q; a key or a value to the last slot of the cache.
__device__ inline void put(const Step& s, const float* turn, int layer, int pair, float first, float second) {
    const int head = pair / HALF, i = pair % HALF;
    if (head < s.heads + s.kv) {
        const float cosine = turn[i], sine = turn[HALF + i], turned = first * cosine - second * sine;
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

// All threads of the grid share out the sectors of `bytes` from `begin` on.
__device__ inline void prefetch(const Element* begin, size_t elements) {
    constexpr int SECTOR = 32 / sizeof(Element);
    for (size_t i = (size_t(blockIdx.x) * THREADS + threadIdx.x) * SECTOR; i < elements; i += size_t(gridDim.x) * THREADS * SECTOR)
        prefetch_sector(reinterpret_cast<const char*>(begin + i));
}

// What a layer reads of weights and cache, or behind the last layer the head's weights, on its way from DRAM to the L2.
__device__ inline void prefetch_layer(const Step& s, int layer) {
    if (layer == s.layers) return prefetch(s.embedding, size_t(s.vocabulary) * s.hidden);
    const size_t qkv = size_t(s.heads + 2 * s.kv) * DIM * s.hidden, o = size_t(s.hidden) * s.heads * DIM, mlp = size_t(s.inner) * s.hidden;
    const size_t cache = size_t(s.kv) * s.context * DIM;
    prefetch(s.qkv + layer * qkv, qkv), prefetch(s.keys + layer * cache, cache), prefetch(s.values + layer * cache, cache);
    prefetch(s.o + layer * o, o), prefetch(s.gate_up + layer * 2 * mlp, 2 * mlp), prefetch(s.down + layer * mlp, mlp);
}

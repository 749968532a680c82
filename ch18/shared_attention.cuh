// Attention on Hopper by warpgroups: tiles, their slots in shared memory, and what a warpgroup holds and does of its 64 queries.
#pragma once
#include <cuda_bf16.h>

#include <cmath>

#include "common/cuda/mbarrier.cuh"
#include "common/cuda/operands.cuh"
#include "common/cuda/tma.cuh"
#include "common/cuda/warpgroup.cuh"
#include "common/cuda/wgmma.cuh"
#include "shared_pingpong.cuh"

using Element = __nv_bfloat16;

constexpr int DIM = 128;             // of a head
constexpr int PANEL = 64;            // columns of a tile that one copy brings: rows of 128 bytes
constexpr int ROWS = WARPGROUP / 2;  // queries of a warpgroup

// Starts scores = q k^T for 16 of the dimensions, by the number of keys.
__device__ inline void start_scores(float (&scores)[64], uint64_t q, uint64_t k, bool add) { wgmma_64x128x16(scores, q, k, add); }
__device__ inline void start_scores(float (&scores)[88], uint64_t q, uint64_t k, bool add) { wgmma_64x176x16(scores, q, k, add); }
__device__ inline void start_scores(float (&scores)[96], uint64_t q, uint64_t k, bool add) { wgmma_64x192x16(scores, q, k, add); }

// CONSUMERS_ warpgroups compute, 64 queries each, over tiles of KEYS_ keys, of which STAGES_ lie in shared memory.
template <int CONSUMERS_, int KEYS_, int STAGES_, typename Stamps_ = Unstamped>
struct Attention {
    using Stamps = Stamps_;
    static constexpr int CONSUMERS = CONSUMERS_, KEYS = KEYS_, STAGES = STAGES_;
    static constexpr bool TURNS = true;  // whether the two warpgroups start products in turn
    static constexpr int QUERIES = CONSUMERS * ROWS, THREADS = (CONSUMERS + 1) * WARPGROUP;
    // As many registers as the block began with: 24 + 2 x 240 = 3 x 168, or 32 + 3 x 160 = 4 x 128.
    static constexpr int LOADING = CONSUMERS == 2 ? 24 : 32, COMPUTING = CONSUMERS == 2 ? 240 : 160;

    // A phase of `full` completes when the TMA has written the tile, one of `empty` when every warp that computes has read it.
    struct alignas(SWIZZLE_PERIOD) Shared {
        Element q[DIM / PANEL][QUERIES * PANEL];
        Element k[STAGES][DIM / PANEL][KEYS * PANEL], v[STAGES][DIM / PANEL][KEYS * PANEL];
        uint64_t full_q, empty_q, full_k[STAGES], empty_k[STAGES], full_v[STAGES], empty_v[STAGES];

        __device__ void initialize() {
            barrier_init(&full_q, 1);
            barrier_init(&empty_q, CONSUMERS * 4);
            for (int i = 0; i < STAGES; i++) {
                barrier_init(&full_k[i], 1);
                barrier_init(&full_v[i], 1);
                barrier_init(&empty_k[i], CONSUMERS * 4);
                barrier_init(&empty_v[i], CONSUMERS * 4);
            }
        }
    };

    // The slot of a tile of keys in the ring, and the parity of the phase in which it is filled.
    struct Slot {
        int stage;
        uint32_t parity;
        __device__ explicit Slot(uint32_t step) : stage(step % STAGES), parity(step / STAGES % 2) {}
    };

    // Loads a tile of `rows` x DIM, of which each panel is a copy of its own.
    __device__ static void load(Element* tile, const CUtensorMap* map, int rows, int first, uint64_t* full) {
        barrier_expect(full, rows * DIM * sizeof(Element));
        for (int i = 0; i < DIM / PANEL; i++) load_tile(tile + i * rows * PANEL, map, i * PANEL, first, full);
    }
};

// The tiles of queries of all heads, in the order in which blocks take them, and how many tiles of keys their queries see.
// If causal, later queries see more keys, so the last tile of every head comes first. Blocks take tiles in rounds, every other round
// backwards, and so get equal work: of three blocks one takes tiles 0, 5 and 6, one takes 1, 4 and 7, one takes 2, 3 and 8.
template <typename A, bool CAUSAL>
struct Tiles {
    static_assert(!CAUSAL || A::KEYS % ROWS == 0, "the diagonal of a warpgroup's queries lies in one tile of keys");
    int heads, queries, keys, per_head, count;
    __host__ __device__ Tiles(int heads, int queries, int keys)
        : heads(heads), queries(queries), keys(keys), per_head(ceil_div(queries, A::QUERIES)), count(per_head * heads) {}
    __device__ int head(int tile) const { return CAUSAL ? tile % heads : tile / per_head; }
    // The first query of a tile, in its head.
    __device__ int first(int tile) const { return (CAUSAL ? per_head - 1 - tile / heads : tile % per_head) * A::QUERIES; }
    // How many tiles of keys the first `rows` queries of a tile see.
    __device__ int steps(int tile, int rows) const {
        return ceil_div(CAUSAL ? min(first(tile) + rows, min(queries, keys)) : keys, A::KEYS);
    }
    // The tile that a block takes after `tile`, which it took in round `round`.
    __device__ int after(int tile, int round) const {
        if (!CAUSAL) return tile + gridDim.x;
        return tile + (round % 2 ? 2 * blockIdx.x + 1 : 2 * (gridDim.x - blockIdx.x) - 1);
    }
};

// What a warpgroup holds of its 64 queries. A thread has 2 rows: elements with i = 0 and 1 of wgmma's layout.
template <typename A>
struct Rows {
    float scores[A::KEYS / 2], sums[DIM / 2];  // scores become shares, exp2(unit * (score - top))
    uint32_t shares[A::KEYS / 4];              // of the tile before, as pairs of bf16
    float top[2], total[2], shrink[2];         // total: of this thread's columns

    // The query that is a thread's row i, where the warpgroup's first one is `first`.
    __device__ static int row(int first, int i) { return first + threadIdx.x % WARPGROUP / 32 * 16 + threadIdx.x % 32 / 4 + 8 * i; }
    // Starts scores = q k^T. The caller commits.
    __device__ void multiply_keys(const typename A::Shared& shared, int stage, int warpgroup) {
        hold(scores);
        wgmma_fence();
#pragma unroll
        for (int i = 0; i < DIM / 16; i++) {
            const int panel = i / 4, columns = i % 4 * 32 >> 4;
            const uint64_t q = wgmma_operand(shared_address(shared.q[panel] + warpgroup * ROWS * PANEL));
            const uint64_t k = wgmma_operand(shared_address(shared.k[stage][panel]));
            start_scores(scores, q + columns, k + columns, i > 0);
        }
        wgmma_commit();
    }
    // Starts sums += shares v. The caller has not touched sums and shares since `hold`.
    __device__ void multiply_values(const typename A::Shared& shared, int stage) {
        hold(sums);
        hold(shares);
        wgmma_fence();
        const uint64_t v = wgmma_rows_operand(shared_address(shared.v[stage][0]), A::KEYS * SWIZZLE_ROW);
#pragma unroll
        for (int i = 0; i < A::KEYS / 16; i++) wgmma_64x128x16(sums, shares + 4 * i, v + i * (16 * SWIZZLE_ROW >> 4));
        wgmma_commit();
    }
    // Keys from `keys` on, of the tile's, get no share.
    __device__ void mask(int keys) { mask(keys, keys); }
    // The same where a thread's two rows see another number of keys each.
    __device__ void mask(int first, int second) {
#pragma unroll
        for (int j = 0; j < A::KEYS / 8; j++) {
#pragma unroll
            for (int e = 0; e < 4; e++) {
                if (8 * j + int(threadIdx.x) % 4 * 2 + e % 2 >= (e < 2 ? first : second)) scores[4 * j + e] = -INFINITY;
            }
        }
    }
    // Turns scores into shares of the new maximum; `shrink` is what the older ones are multiplied by.
    __device__ void softmax(float unit) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float now = top[i];
#pragma unroll
            for (int j = 0; j < A::KEYS / 8; j++) now = fmaxf(now, fmaxf(scores[4 * j + 2 * i], scores[4 * j + 2 * i + 1]));
            now = fmaxf(now, __shfl_xor_sync(~0u, now, 1));
            now = fmaxf(now, __shfl_xor_sync(~0u, now, 2));
            shrink[i] = exp2f((top[i] - now) * unit);
            total[i] *= shrink[i];
            top[i] = now;
            const float base = now * unit;
#pragma unroll
            for (int j = 0; j < A::KEYS / 8; j++) {
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    float& score = scores[4 * j + 2 * i + e];
                    score = exp2f(fmaf(score, unit, -base));
                    total[i] += score;
                }
            }
        }
    }
    // Rounds the shares, once the product that reads the older ones has ended.
    __device__ void round() {
#pragma unroll
        for (int i = 0; i < A::KEYS / 4; i++) {
            const __nv_bfloat162 pair = __floats2bfloat162_rn(scores[2 * i], scores[2 * i + 1]);
            shares[i] = reinterpret_cast<const uint32_t&>(pair);
        }
    }
    __device__ void shrink_sums() {
#pragma unroll
        for (int i = 0; i < DIM / 2; i++) sums[i] *= shrink[i / 2 % 2];
    }
    // Stores rows below `queries`: four lanes write 16 bytes of a row.
    __device__ void store(Element* y, int first, int queries) {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            float all = total[i];
            all += __shfl_xor_sync(~0u, all, 1);
            all += __shfl_xor_sync(~0u, all, 2);
            const float part = 1 / all;
            const int row = this->row(first, i);
            if (row >= queries) continue;
#pragma unroll
            for (int j = 0; j < DIM / 8; j++) {
                *reinterpret_cast<__nv_bfloat162*>(y + size_t(row) * DIM + 8 * j + threadIdx.x % 4 * 2) =
                    __floats2bfloat162_rn(sums[4 * j + 2 * i] * part, sums[4 * j + 2 * i + 1] * part);
            }
        }
    }
};

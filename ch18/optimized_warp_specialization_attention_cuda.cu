// Optimized: CUDA C++ with two warpgroups that multiply in turn: exponentials of one run under products of the other.
// predicts: baseline 1.28 ms = 4 * heads * queries * keys * 128 / bf16 + 0.26e-3 + 0.32e-3 on h100  (exponentials, instructions: no overlap)
// predicts: optimized 0.768 ms = 1.063 * 4 * heads * queries * keys * 128 / bf16 + 16 * 1.7e-6 on h100  (3 % twice for edges; first softmax)
// needs: wgmma
// nvcc: -ftz=true
// proves: /\bUSETMAXREG\b/
// has: tma_load_tile
// has: wgmma_f16_bf16
// has: spills == 0
#include <cuda_bf16.h>

#include <cmath>

#include "common/cuda/launch.cuh"
#include "common/cuda/mbarrier.cuh"
#include "common/cuda/operands.cuh"
#include "common/cuda/tma.cuh"
#include "common/cuda/warpgroup.cuh"
#include "common/cuda/wgmma.cuh"

using Element = __nv_bfloat16;

constexpr int DIM = 128;             // of a head
constexpr int PANEL = 64;            // columns of a tile that one copy brings: rows of 128 bytes
constexpr int ROWS = WARPGROUP / 2;  // queries of a warpgroup

// Starts scores = q k^T for 16 of the dimensions, by the number of keys.
__device__ inline void start_scores(float (&scores)[64], uint64_t q, uint64_t k, bool add) { wgmma_64x128x16(scores, q, k, add); }
__device__ inline void start_scores(float (&scores)[88], uint64_t q, uint64_t k, bool add) { wgmma_64x176x16(scores, q, k, add); }
__device__ inline void start_scores(float (&scores)[96], uint64_t q, uint64_t k, bool add) { wgmma_64x192x16(scores, q, k, add); }

// CONSUMERS_ warpgroups compute, 64 queries each, over tiles of KEYS_ keys, of which STAGES_ lie in shared memory.
template <int CONSUMERS_, int KEYS_, int STAGES_>
struct Attention {
    static constexpr int CONSUMERS = CONSUMERS_, KEYS = KEYS_, STAGES = STAGES_;
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

// What a warpgroup holds of its 64 queries. A thread has 2 rows: elements with i = 0 and 1 of wgmma's layout.
template <typename A>
struct Rows {
    float scores[A::KEYS / 2], sums[DIM / 2];  // scores become shares, exp2(unit * (score - top))
    uint32_t shares[A::KEYS / 4];              // of the tile before, as pairs of bf16
    float top[2], total[2], shrink[2];         // total: of this thread's columns

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
    __device__ void mask(int keys) {
#pragma unroll
        for (int j = 0; j < A::KEYS / 8; j++) {
#pragma unroll
            for (int e = 0; e < 4; e++) {
                if (8 * j + int(threadIdx.x) % 4 * 2 + e % 2 >= keys) scores[4 * j + e] = -INFINITY;
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
            const int row = first + threadIdx.x % WARPGROUP / 32 * 16 + threadIdx.x % 32 / 4 + 8 * i;
            if (row >= queries) continue;
#pragma unroll
            for (int j = 0; j < DIM / 8; j++) {
                *reinterpret_cast<__nv_bfloat162*>(y + size_t(row) * DIM + 8 * j + threadIdx.x % 4 * 2) =
                    __floats2bfloat162_rn(sums[4 * j + 2 * i] * part, sums[4 * j + 2 * i + 1] * part);
            }
        }
    }
};

template <typename A>
__global__ void __launch_bounds__(A::THREADS, 1)
    attend(const __grid_constant__ CUtensorMap q, const __grid_constant__ CUtensorMap k, const __grid_constant__ CUtensorMap v, Element* y,
           int heads, int queries, int keys, float unit) {
    extern __shared__ __align__(SWIZZLE_PERIOD) unsigned char bytes[];
    typename A::Shared& shared = *reinterpret_cast<typename A::Shared*>(bytes);
    const int per_head = ceil_div(queries, A::QUERIES), tiles = per_head * heads, steps = ceil_div(keys, A::KEYS);
    if (threadIdx.x == 0) shared.initialize();
    __syncthreads();

    uint32_t done = 0, steps_done = 0;  // tiles of queries, and tiles of keys of all of these
    const int warpgroup = threadIdx.x / WARPGROUP;
    if (warpgroup == A::CONSUMERS) {
        keep_registers<A::LOADING>();
        if (threadIdx.x == A::CONSUMERS * WARPGROUP) {
            for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, done++, steps_done += steps) {
                const int head = tile / per_head;
                barrier_wait(&shared.empty_q, done % 2 ^ 1);  // passes at once on a fresh barrier
                A::load(shared.q[0], &q, A::QUERIES, head * queries + tile % per_head * A::QUERIES, &shared.full_q);
                for (int i = 0; i <= steps; i++) {  // from the last tile of keys to the first; values one step later
                    const int first = head * keys + (steps - 1 - i) * A::KEYS;
                    if (i < steps) {
                        const typename A::Slot at(steps_done + i);
                        barrier_wait(&shared.empty_k[at.stage], at.parity ^ 1);
                        A::load(shared.k[at.stage][0], &k, A::KEYS, first, &shared.full_k[at.stage]);
                    }
                    if (i > 0) {
                        const typename A::Slot at(steps_done + i - 1);
                        barrier_wait(&shared.empty_v[at.stage], at.parity ^ 1);
                        A::load(shared.v[at.stage][0], &v, A::KEYS, first + A::KEYS, &shared.full_v[at.stage]);
                    }
                }
            }
        }
    } else {
        take_registers<A::COMPUTING>();
        const bool signals = threadIdx.x % 32 == 0;
        const int own = 1 + warpgroup, next = 1 + (warpgroup + 1) % A::CONSUMERS;  // the barriers of turns
        if (next == 1) pass_turn(next);                                            // the first turn is the first warpgroup's
        Rows<A> rows;
        for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, done++, steps_done += steps) {
            typename A::Slot at(steps_done);
#pragma unroll
            for (int i = 0; i < DIM / 2; i++) rows.sums[i] = 0;
            for (int i = 0; i < 2; i++) rows.top[i] = -INFINITY, rows.total[i] = 0;
            const auto wait_for_keys = [&](int i) {
                const typename A::Slot awaited(steps_done + i);
                if (i < steps) barrier_wait(&shared.full_k[awaited.stage], awaited.parity);
            };
            barrier_wait(&shared.full_q, done % 2);
            wait_for_keys(0);
            rows.multiply_keys(shared, at.stage, warpgroup);
            wgmma_wait<0>();
            hold(rows.scores);
            if (signals) barrier_arrive(&shared.empty_k[at.stage]);
            rows.mask(keys - (steps - 1) * A::KEYS);
            rows.softmax(unit);
            rows.round();
            wait_for_keys(1);
            for (int i = 1; i < steps; i++) {
                const typename A::Slot before = at;
                at = typename A::Slot(steps_done + i);
                await_turn(own);
                rows.multiply_keys(shared, at.stage, warpgroup);
                barrier_wait(&shared.full_v[before.stage], before.parity);
                rows.multiply_values(shared, before.stage);
                pass_turn(next);
                wgmma_wait<1>();  // the scores; this softmax runs under the products of values, and under the other warpgroup's products
                hold(rows.scores);
                if (signals) barrier_arrive(&shared.empty_k[at.stage]);
                rows.softmax(unit);
                hold(rows.scores);
                wait_for_keys(i + 1);  // a loop between the shares and the next wait: ptxas would compute the shares after that
                wgmma_wait<0>();
                hold(rows.sums);
                hold(rows.shares);
                if (signals) barrier_arrive(&shared.empty_v[before.stage]);
                rows.round();
                rows.shrink_sums();
            }
            if (signals) barrier_arrive(&shared.empty_q);
            barrier_wait(&shared.full_v[at.stage], at.parity);
            rows.multiply_values(shared, at.stage);
            wgmma_wait<0>();
            hold(rows.sums);
            if (signals) barrier_arrive(&shared.empty_v[at.stage]);
            const int head = tile / per_head;
            rows.store(y + size_t(head) * queries * DIM, tile % per_head * A::QUERIES + warpgroup * ROWS, queries);
        }
    }
}

using Chosen = Attention<2, 176, 2>;

PREPARE(void** state) {
    *state = nullptr;
    return cudaFuncSetAttribute(attend<Chosen>, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Chosen::Shared));
}

LAUNCH(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v, __nv_bfloat16* y, int heads, int queries, int keys,
       cudaStream_t stream) {
    CUtensorMap of_q, of_k, of_v;
    int device, multiprocessors;
    cudaError_t error = cudaGetDevice(&device);
    if (!error) error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    if (!error) error = encode(&of_q, Tiled<Element>{q, heads * queries, DIM, Chosen::QUERIES, PANEL, CU_TENSOR_MAP_SWIZZLE_128B});
    if (!error) error = encode(&of_k, Tiled<Element>{k, heads * keys, DIM, Chosen::KEYS, PANEL, CU_TENSOR_MAP_SWIZZLE_128B});
    if (!error) error = encode(&of_v, Tiled<Element>{v, heads * keys, DIM, Chosen::KEYS, PANEL, CU_TENSOR_MAP_SWIZZLE_128B});
    if (error) return error;
    const int blocks = min(multiprocessors, ceil_div(queries, Chosen::QUERIES) * heads);
    const float unit = 1.44269504f / sqrtf(DIM);  // log2(e) / sqrt(DIM): shares are powers of 2
    attend<Chosen><<<blocks, Chosen::THREADS, sizeof(Chosen::Shared), stream>>>(of_q, of_k, of_v, y, heads, queries, keys, unit);
    return cudaGetLastError();
}

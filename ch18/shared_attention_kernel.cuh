// The attention kernel of warpgroups, and its launch: one warp loads, the others multiply under their own softmax, or under each other's.
#pragma once
#include "common/cuda/launch.cuh"
#include "shared_attention.cuh"

template <typename A, bool CAUSAL>
__global__ void __launch_bounds__(A::THREADS, 1)
    attend(const __grid_constant__ CUtensorMap q, const __grid_constant__ CUtensorMap k, const __grid_constant__ CUtensorMap v, Element* y,
           int heads, int queries, int keys, float unit) {
    extern __shared__ __align__(SWIZZLE_PERIOD) unsigned char bytes[];
    typename A::Shared& shared = *reinterpret_cast<typename A::Shared*>(bytes);
    const Tiles<A, CAUSAL> tiles(heads, queries, keys);
    int steps = tiles.steps(0, A::QUERIES);  // tiles of keys, for a tile of queries
    if (threadIdx.x == 0) shared.initialize();
    __syncthreads();

    uint32_t done = 0, steps_done = 0;  // tiles of queries, and tiles of keys of all of these
    const int warpgroup = threadIdx.x / WARPGROUP;
    if (warpgroup == A::CONSUMERS) {
        keep_registers<A::LOADING>();
        if (threadIdx.x == A::CONSUMERS * WARPGROUP) {
            for (int tile = blockIdx.x; tile < tiles.count; tile = tiles.after(tile, done++), steps_done += steps) {
                const int head = tiles.head(tile);
                if (CAUSAL) steps = tiles.steps(tile, A::QUERIES);
                barrier_wait(&shared.empty_q, done % 2 ^ 1);  // passes at once on a fresh barrier
                A::load(shared.q[0], &q, A::QUERIES, head * queries + tiles.first(tile), &shared.full_q);
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
        if (A::TURNS && next == 1) pass_turn(next);                                // the first turn is the first warpgroup's
        Rows<A> rows;
        for (int tile = blockIdx.x; tile < tiles.count; tile = tiles.after(tile, done++), steps_done += steps) {
            if (CAUSAL) steps = tiles.steps(tile, A::QUERIES);
            // 1 if only the other warpgroup's queries see the last tile of keys. The shuffle tells the compiler that all lanes agree.
            const int skipped = CAUSAL ? __shfl_sync(~0u, steps - tiles.steps(tile, (warpgroup + 1) * ROWS), 0) : 0;
            const typename A::Slot last(steps_done);
            typename A::Slot at(steps_done + skipped);
#pragma unroll
            for (int i = 0; i < DIM / 2; i++) rows.sums[i] = 0;
            for (int i = 0; i < 2; i++) rows.top[i] = -INFINITY, rows.total[i] = 0;
            const auto wait_for_keys = [&](int i) {
                const typename A::Slot awaited(steps_done + i);
                if (i < steps) barrier_wait(&shared.full_k[awaited.stage], awaited.parity);
            };
            if (skipped) {
                wait_for_keys(0);
                // Behind it all lanes of a warp have seen that the keys are there, so the barrier's next phase may begin.
                if constexpr (A::TURNS) {
                    await_turn(own);
                    pass_turn(next);
                } else {
                    __syncwarp();
                }
                if (signals) barrier_arrive(&shared.empty_k[last.stage]);
            }
            barrier_wait(&shared.full_q, done % 2);
            wait_for_keys(skipped);
            rows.multiply_keys(shared, at.stage, warpgroup);
            wgmma_wait<0>();
            hold(rows.scores);
            if (signals) barrier_arrive(&shared.empty_k[at.stage]);
            const int first_key = (steps - 1 - skipped) * A::KEYS;
            if (CAUSAL) {
                const int first = tiles.first(tile) + warpgroup * ROWS;
                rows.mask(min(keys, rows.row(first, 0) + 1) - first_key, min(keys, rows.row(first, 1) + 1) - first_key);
            } else {
                rows.mask(keys - first_key);
            }
            rows.softmax(unit);
            rows.round();
            if (skipped) {
                barrier_wait(&shared.full_v[last.stage], last.parity);
                __syncwarp();
                if (signals) barrier_arrive(&shared.empty_v[last.stage]);
            }
            wait_for_keys(skipped + 1);
            for (int i = skipped + 1; i < steps; i++) {
                const typename A::Slot before = at;
                at = typename A::Slot(steps_done + i);
                A::Stamps::stamp(WANTED, steps_done + i);
                if constexpr (A::TURNS) await_turn(own);
                A::Stamps::stamp(TAKEN, steps_done + i);
                rows.multiply_keys(shared, at.stage, warpgroup);
                A::Stamps::stamp(ISSUED, steps_done + i);
                barrier_wait(&shared.full_v[before.stage], before.parity);
                A::Stamps::stamp(FED, steps_done + i);
                rows.multiply_values(shared, before.stage);
                if constexpr (A::TURNS) pass_turn(next);
                A::Stamps::stamp(PASSED, steps_done + i);
                wgmma_wait<1>();  // the scores; this softmax runs under the products of values, and under the other warpgroup's products
                hold(rows.scores);
                A::Stamps::stamp(SCORED, steps_done + i);
                if (signals) barrier_arrive(&shared.empty_k[at.stage]);
                rows.softmax(unit);
                hold(rows.scores);
                A::Stamps::stamp(WEIGHED, steps_done + i);
                wait_for_keys(i + 1);  // a loop between the shares and the next wait: ptxas would compute the shares after that
                A::Stamps::stamp(KEYED, steps_done + i);
                wgmma_wait<0>();
                hold(rows.sums);
                hold(rows.shares);
                A::Stamps::stamp(SUMMED, steps_done + i);
                if (signals) barrier_arrive(&shared.empty_v[before.stage]);
                rows.round();
                rows.shrink_sums();
                A::Stamps::stamp(ROUNDED, steps_done + i);
            }
            if (signals) barrier_arrive(&shared.empty_q);
            barrier_wait(&shared.full_v[at.stage], at.parity);
            rows.multiply_values(shared, at.stage);
            wgmma_wait<0>();
            hold(rows.sums);
            if (signals) barrier_arrive(&shared.empty_v[at.stage]);
            rows.store(y + size_t(tiles.head(tile)) * queries * DIM, tiles.first(tile) + warpgroup * ROWS, queries);
        }
    }
}

template <typename A, bool CAUSAL = false>
cudaError_t prepare_attention() {
    return cudaFuncSetAttribute(attend<A, CAUSAL>, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(typename A::Shared));
}

template <typename A, bool CAUSAL = false>
cudaError_t launch_attention(const Element* q, const Element* k, const Element* v, Element* y, int heads, int queries, int keys,
                             cudaStream_t stream) {
    CUtensorMap of_q, of_k, of_v;
    int device, multiprocessors;
    cudaError_t error = cudaGetDevice(&device);
    if (!error) error = cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device);
    if (!error) error = encode(&of_q, Tiled<Element>{q, heads * queries, DIM, A::QUERIES, PANEL, CU_TENSOR_MAP_SWIZZLE_128B});
    if (!error) error = encode(&of_k, Tiled<Element>{k, heads * keys, DIM, A::KEYS, PANEL, CU_TENSOR_MAP_SWIZZLE_128B});
    if (!error) error = encode(&of_v, Tiled<Element>{v, heads * keys, DIM, A::KEYS, PANEL, CU_TENSOR_MAP_SWIZZLE_128B});
    if (error) return error;
    const int blocks = min(multiprocessors, ceil_div(queries, A::QUERIES) * heads);
    const float unit = 1.44269504f / sqrtf(DIM);  // log2(e) / sqrt(DIM): shares are powers of 2
    attend<A, CAUSAL><<<blocks, A::THREADS, sizeof(typename A::Shared), stream>>>(of_q, of_k, of_v, y, heads, queries, keys, unit);
    return cudaGetLastError();
}

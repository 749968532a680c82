// Three roles that overlap: load, multiply, drain. One block per SM loops over tiles of c = a b^T; Mma, what multiplies, is a parameter.
//
// Load hands stages of a ring to multiply; multiply hands one of two accumulators to drain. K-step s is in stage s % STAGES. Tile t of a
// block is in accumulator t % 2, which warpgroup 1 + t % 2 drains while the next tile is multiplied into the other accumulator.
// With SHARING = 2 only the loads overlap: both warpgroups multiply their half of each tile, and then both drain it.
//
//   barrier         completed by                                    waited for by
//   loaded          the TMA, all bytes of a stage                   multiply, before a step
//   consumed        the tensor cores, which have read the stage     load, before it asks for the step STAGES later
//   accumulated     multiply, after a tile's last step              the next multiply (registers) or drain (tensor memory)
//   drained         drain, which has read the accumulator           multiply, before it begins the tile after next
#pragma once
#include "common/cuda/mbarrier.cuh"
#include "common/cuda/tma.cuh"
#include "common/cuda/warpgroup.cuh"
#include "shared_persistent.cuh"
#include "shared_tile.cuh"
#include "shared_trace.cuh"

constexpr int PANEL = 64;                // columns of c per TMA store: rows of 128 bytes
constexpr int THREADS = 3 * WARPGROUP;   // warpgroup 0 loads and may multiply, warpgroups 1 and 2 have an accumulator each
constexpr int SHARED_BYTES = 224 << 10;  // for tiles, of the 227 KB that a block may have; the rest holds the barriers

// A block's shared memory. A tile has Mma::TILE_N columns of c, and a warpgroup drains ROWS rows of it.
template <typename Mma>
struct alignas(SWIZZLE_PERIOD) Shared {
    static constexpr int TILE_N = Mma::TILE_N;
    static constexpr int ROWS = TILE_M / Mma::SHARING;
    static constexpr int STAGE_BYTES = (TILE_M + TILE_N) * SWIZZLE_ROW;
    static constexpr int STAGES = (SHARED_BYTES - 2 * TILE_M * SWIZZLE_ROW) / STAGE_BYTES;
    Element a[STAGES][TILE_M * TILE_K], b[STAGES][TILE_N * TILE_K], panel[2][ROWS * PANEL];
    uint64_t loaded[STAGES], consumed[STAGES], accumulated[2], drained[2];
    uint32_t tensor_memory;
};

// The stage of a K-step in the ring, and the parity of the barrier phase in which that stage is filled.
template <int STAGES>
struct Place {
    int stage;
    uint32_t parity;
    __device__ explicit Place(uint32_t step) : stage(step % STAGES), parity(step / STAGES % 2) {}
};

// The tiles of a block: every gridDim.x-th, with `steps` K-steps each.
template <int TILE_N>
struct Walk {
    Tiles<TILE_N> tiles;
    int steps;
    __device__ Walk(int m, int n, int k) : tiles(m, n), steps(ceil_div(k, TILE_K)) {}
    __device__ int number(int tile) const { return blockIdx.x + tile * gridDim.x; }
    __device__ bool has(int tile) const { return number(tile) < tiles.count(); }
    __device__ int row(int tile) const { return tiles.row(number(tile)); }
    __device__ int column(int tile) const { return tiles.column(number(tile)); }
};

// Role 1, one thread: issues the TMA loads of a and b, up to STAGES K-steps ahead of the products.
template <typename Mma>
__device__ void load(Shared<Mma>& shared, const Walk<Mma::TILE_N>& walk, const CUtensorMap* a, const CUtensorMap* b) {
    using Place = Place<Shared<Mma>::STAGES>;
    uint32_t step = 0;
    for (int tile = 0; walk.has(tile); tile++) {
        for (int i = 0; i < walk.steps; i++, step++) {
            const Place at(step);
            barrier_wait(&shared.consumed[at.stage], at.parity ^ 1);  // the stage is free; parity ^ 1 passes at once on a fresh barrier
            stamp<Mma>(ASKED, step);
            barrier_expect(&shared.loaded[at.stage], Shared<Mma>::STAGE_BYTES);
            load_tile(shared.a[at.stage], a, i * TILE_K, walk.row(tile), &shared.loaded[at.stage]);
            load_tile(shared.b[at.stage], b, i * TILE_K, walk.column(tile), &shared.loaded[at.stage]);
        }
    }
    // A commit arrives on its barrier when its products are complete, so the block must not exit before.
    for (int i = 0; i < Shared<Mma>::STAGES; i++, step++) {
        const Place at(step);
        barrier_wait(&shared.consumed[at.stage], at.parity ^ 1);
    }
}

// Role 2, one thread or one warpgroup: multiplies a tile into its accumulator. If accumulators are registers, their warpgroups alternate:
// each starts when the other has issued its last K-step. If they are tensor memory, the tile before last must have been drained.
template <typename Mma>
__device__ void multiply(Shared<Mma>& shared, const Walk<Mma::TILE_N>& walk, Mma& mma, int tile) {
    using Place = Place<Shared<Mma>::STAGES>;
    if (Mma::IN_REGISTERS && Mma::SHARING == 1 && tile >= 1) barrier_wait(&shared.accumulated[(tile - 1) % 2], (tile - 1) / 2 % 2);
    if (!Mma::IN_REGISTERS && tile >= 2) barrier_wait(&shared.drained[tile % 2], (tile / 2 - 1) % 2);
    const bool leads = !Mma::IN_REGISTERS || threadIdx.x % WARPGROUP == 0;
    for (int i = 0; i < walk.steps; i++) {
        const Place at(uint32_t(tile) * walk.steps + i);
        stamp<Mma>(WANTED, tile * walk.steps + i, leads);
        barrier_wait(&shared.loaded[at.stage], at.parity);
        stamp<Mma>(FED, tile * walk.steps + i, leads);
        mma.step(tile % 2, shared.a[at.stage], shared.b[at.stage], i == 0, &shared.consumed[at.stage]);
    }
    mma.end(&shared.accumulated[tile % 2]);
}

// Role 3, one warpgroup: stores an accumulator, 64 columns at a time, rounded into a panel that the TMA stores.
template <typename Mma>
__device__ void drain(Shared<Mma>& shared, const Walk<Mma::TILE_N>& walk, Mma& mma, int tile, const CUtensorMap* c) {
    const int own = Mma::SHARING == 1 ? tile % 2 : threadIdx.x / WARPGROUP - 1;
    const bool leads = threadIdx.x % WARPGROUP == 0;
    if (!Mma::IN_REGISTERS) barrier_wait(&shared.accumulated[own], tile / 2 % 2);
#pragma unroll
    for (int panel = 0; panel < Mma::TILE_N / PANEL; panel++) {
        if (leads) wait_until_stores_have_read();
        warpgroup_sync(1 + own);
        if (panel == 0) stamp<Mma>(READING, tile, leads);
        mma.read(own, panel, reinterpret_cast<unsigned char*>(shared.panel[own]));
        if (!Mma::IN_REGISTERS && panel == Mma::TILE_N / PANEL - 1) mma.give_back(&shared.drained[own]);
        show_to_async_proxy();
        warpgroup_sync(1 + own);
        const int below = Mma::SHARING == 1 ? 0 : own * Shared<Mma>::ROWS;
        if (leads) store_tile(c, walk.column(tile) + panel * PANEL, walk.row(tile) + below, shared.panel[own]);
    }
    stamp_stored<Mma>(tile, leads);
}

template <typename Mma>
__global__ void __launch_bounds__(THREADS, 1) triple_overlap(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                                                             const __grid_constant__ CUtensorMap c, int m, int n, int k) {
    extern __shared__ __align__(SWIZZLE_PERIOD) unsigned char bytes[];
    auto& shared = *reinterpret_cast<Shared<Mma>*>(bytes);
    const Walk<Mma::TILE_N> walk(m, n, k);
    const int warp = threadIdx.x / 32, warpgroup = threadIdx.x / WARPGROUP;
    if (threadIdx.x == 0) {
        for (uint64_t& barrier : shared.loaded) barrier_init(&barrier, 1 + TRACED<Mma>);
        for (uint64_t& barrier : shared.consumed) barrier_init(&barrier, Mma::CONSUMERS + TRACED<Mma>);
        for (uint64_t& barrier : shared.accumulated) barrier_init(&barrier, Mma::CONSUMERS);
        for (uint64_t& barrier : shared.drained) barrier_init(&barrier, WARPGROUP);
    }
    if (warp == 1) Mma::set_up(&shared.tensor_memory);
    __syncthreads();
    Mma mma(shared.tensor_memory);
    if (warpgroup == 0) {
        Mma::leave_registers();
        if (warp == 0 && elect()) load(shared, walk, &a, &b);
        if (!Mma::IN_REGISTERS && warp == 1 && elect()) {
            for (int tile = 0; walk.has(tile); tile++) multiply(shared, walk, mma, tile);
        }
        if (TRACED<Mma> && warp == 2 && elect()) watch<Mma>(shared, walk, LOADED);
        if (TRACED<Mma> && warp == 3 && elect()) watch<Mma>(shared, walk, CONSUMED);
        __syncwarp();
    } else {
        Mma::take_registers();
        for (int tile = Mma::SHARING == 1 ? warpgroup - 1 : 0; walk.has(tile); tile += 2 / Mma::SHARING) {
            if (Mma::IN_REGISTERS) multiply(shared, walk, mma, tile);
            drain(shared, walk, mma, tile, &c);
        }
        if (threadIdx.x % WARPGROUP == 0) wait_until_stores_have_read();
    }
    mma.tear_down(warp == 1);
}

// Once, before the first launch: allows a block that much dynamic shared memory.
template <typename Mma>
cudaError_t prepare_triple_overlap() {
    return cudaFuncSetAttribute(triple_overlap<Mma>, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared<Mma>));
}

template <typename Mma>
cudaError_t launch_triple_overlap(const Element* a, const Element* b, Element* c, int m, int n, int k, cudaStream_t stream) {
    const Blocks blocks{Tiles<Mma::TILE_N>(m, n).count(), THREADS, sizeof(Shared<Mma>), stream};
    return launch_persistent(triple_overlap<Mma>, blocks, Product{a, b, c, m, n, k}, Boxes{TILE_M, Mma::TILE_N, Shared<Mma>::ROWS});
}

// Optimized: two SMs multiply as a pair: each loads half of b.
// predicts: optimized = 0.667 x baseline  (cycles per K-step: 512 to load 32 KB at 64 bytes per cycle instead of 768)
// proves: tcgen05_mma_2cta
// proves: tma_load_2cta
// proves: tcgen05_commit_multicast
// proves: cluster_arrive
// has: tma_store
// has: tcgen05_alloc_2cta
// has: tcgen05_dealloc
// has: tcgen05_relinquish
// has: tcgen05_ld
// has: mbarrier_expect_tx
// has: spills == 0
//
// Nobody has run this file on a GPU. Unproved, in addition to the list at the head of optimized_tmem_triple_overlap.cu: that the tensor
// cores of two SMs find rows and halves of b where tcgen05_pair.cuh says; that bytes which land in block 1 complete on the barrier of block
// 0; that a remote arrival, between fences, orders tcgen05 operations of two blocks as a local arrival does for one; and that all SMs find
// a pair.
#include "common/cuda/cluster.cuh"
#include "common/cuda/launch.cuh"
#include "common/cuda/tcgen05_pair.cuh"
#include "common/cuda/warpgroup.cuh"
#include "shared_persistent.cuh"
#include "shared_tensor_memory.cuh"
#include "shared_tile.cuh"

constexpr int PAIR = 2;      // blocks of a cluster, 128 rows of c each
constexpr int TILE_N = 256;  // columns of c, which are rows of b: each block loads half of them
constexpr int HALF_N = TILE_N / PAIR;
constexpr int PANEL = 64;                 // columns of c per TMA store
constexpr int THREADS = 384;              // warpgroup 0 loads and multiplies, 1 and 2 drain an accumulator each
constexpr int STAGES = 6;                 // 32 KB each, in addition to two panels of 16 KB
constexpr uint32_t COLUMNS = 2 * TILE_N;  // two accumulators, all of tensor memory
constexpr uint32_t INSTRUCTION = tcgen05_instruction(PAIR * TILE_M, TILE_N);

// Only block 0's `loaded` and `drained` are used, because its thread multiplies for both; `consumed` and `accumulated` complete in both.
struct alignas(SWIZZLE_PERIOD) Shared {
    Element a[STAGES][TILE_M * TILE_K], b[STAGES][HALF_N * TILE_K], panel[2][TILE_M * PANEL];
    uint64_t loaded[STAGES], consumed[STAGES], accumulated[2], drained[2];
    uint32_t tensor_memory;
};

// The tiles of a pair of blocks: every (number of pairs)-th tile of 256 x 256.
struct Walk {
    Tiles<TILE_N> tiles;
    int rank, steps;
    __device__ Walk(int m, int n, int k) : tiles(m, n, PAIR), rank(cluster_rank()), steps(ceil_div(k, TILE_K)) {}
    __device__ int number(int tile) const { return (blockIdx.x + tile * gridDim.x) / PAIR; }
    __device__ bool has(int tile) const { return number(tile) < tiles.count(); }
    __device__ int row(int tile) const { return tiles.row(number(tile)) + rank * TILE_M; }
    __device__ int column(int tile) const { return tiles.column(number(tile)); }
};

// Role 1, a thread of each block: loads its rows of a and its half of b. Block 0 announces the bytes of both blocks.
__device__ void load(Shared& shared, const Walk& walk, const CUtensorMap* a, const CUtensorMap* b) {
    uint32_t step = 0;
    for (int tile = 0; walk.has(tile); tile++) {
        for (int i = 0; i < walk.steps; i++, step++) {
            const int at = step % STAGES;
            barrier_wait(&shared.consumed[at], step / STAGES % 2 ^ 1);  // the stage is free; parity ^ 1 passes at once at first
            if (walk.rank == 0) barrier_expect(&shared.loaded[at], PAIR * (sizeof shared.a[at] + sizeof shared.b[at]));
            load_tile_for_pair(shared.a[at], a, i * TILE_K, walk.row(tile), &shared.loaded[at]);
            load_tile_for_pair(shared.b[at], b, i * TILE_K, walk.column(tile) + walk.rank * HALF_N, &shared.loaded[at]);
        }
    }
    // A commit arrives on its barrier when its products are complete, so the block must not exit before.
    for (int i = 0; i < STAGES; i++, step++) barrier_wait(&shared.consumed[step % STAGES], step / STAGES % 2 ^ 1);
}

// Role 2, a thread of block 0: multiplies each tile into its accumulator, once both blocks have drained the tile before last.
__device__ void multiply(Shared& shared, const Walk& walk, uint32_t sums) {
    uint32_t step = 0;
    for (int tile = 0; walk.has(tile); tile++) {
        if (tile >= 2) barrier_wait(&shared.drained[tile % 2], (tile / 2 - 1) % 2);
        for (int i = 0; i < walk.steps; i++, step++) {
            const int at = step % STAGES;
            const uint64_t a = tcgen05_operand(shared_address(shared.a[at])), b = tcgen05_operand(shared_address(shared.b[at]));
            barrier_wait(&shared.loaded[at], step / STAGES % 2);
            tcgen05_fence_after();
#pragma unroll
            for (int l = 0; l < TILE_K / 16; l++) {
                const uint64_t columns = l * 32 >> 4;
                tcgen05_multiply_pair(tensor_address(sums, 0, tile % 2 * TILE_N), a + columns, b + columns, INSTRUCTION, i > 0 || l > 0);
            }
            tcgen05_commit_pair(&shared.consumed[at]);
        }
        tcgen05_commit_pair(&shared.accumulated[tile % 2]);
    }
}

// Role 3, a warpgroup of each block: stores its rows of a tile.
__device__ void drain(Shared& shared, const Walk& walk, uint32_t sums, int tile, const CUtensorMap* c) {
    const int own = tile % 2;
    const bool leads = threadIdx.x % WARPGROUP == 0;
    barrier_wait(&shared.accumulated[own], tile / 2 % 2);
#pragma unroll
    for (int panel = 0; panel < TILE_N / PANEL; panel++) {
        if (leads) wait_until_stores_have_read();
        warpgroup_sync(1 + own);
        round_into_panel(sums, own * TILE_N + panel * PANEL, reinterpret_cast<unsigned char*>(shared.panel[own]));
        if (panel == TILE_N / PANEL - 1) {
            tcgen05_fence_before();
            cluster_arrive(&shared.drained[own], 0);
        }
        show_to_async_proxy();
        warpgroup_sync(1 + own);
        if (leads) store_tile(c, walk.column(tile) + panel * PANEL, walk.row(tile), shared.panel[own]);
    }
}

__global__ void __cluster_dims__(PAIR, 1, 1) __launch_bounds__(THREADS, 1)
    multiply_in_pairs(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, const __grid_constant__ CUtensorMap c,
                      int m, int n, int k) {
    extern __shared__ __align__(SWIZZLE_PERIOD) unsigned char bytes[];
    auto& shared = *reinterpret_cast<Shared*>(bytes);
    const Walk walk(m, n, k);
    const int warp = threadIdx.x / 32, warpgroup = threadIdx.x / WARPGROUP;
    if (threadIdx.x == 0) {
        for (uint64_t& barrier : shared.loaded) barrier_init(&barrier, 1);
        for (uint64_t& barrier : shared.consumed) barrier_init(&barrier, 1);
        for (uint64_t& barrier : shared.accumulated) barrier_init(&barrier, 1);
        for (uint64_t& barrier : shared.drained) barrier_init(&barrier, PAIR * WARPGROUP);
        show_barriers_to_cluster();
    }
    if (warp == 1) tensor_memory_take_pair(&shared.tensor_memory, COLUMNS);
    tcgen05_fence_before();
    cluster_sync();
    tcgen05_fence_after();
    const uint32_t sums = shared.tensor_memory;

    if (warpgroup == 0) {
        if (warp == 0 && elect()) load(shared, walk, &a, &b);
        if (warp == 1 && walk.rank == 0 && elect()) multiply(shared, walk, sums);
        __syncwarp();
    } else {
        for (int tile = warpgroup - 1; walk.has(tile); tile += 2) drain(shared, walk, sums, tile, &c);
        if (threadIdx.x % WARPGROUP == 0) wait_until_stores_have_read();
    }
    tcgen05_fence_before();
    cluster_sync();  // neither block exits or frees its columns while the other may access it
    tcgen05_fence_after();
    if (warp == 1) tensor_memory_give_back_pair(sums, COLUMNS);
}

PREPARE(void** state) {
    *state = nullptr;
    return cudaFuncSetAttribute(multiply_in_pairs, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared));
}

LAUNCH(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k, cudaStream_t stream) {
    Maps maps;
    int pairs = Tiles<TILE_N>(m, n, PAIR).count();
    if (cudaError_t error = encode(&maps, Product{a, b, c, m, n, k}, Boxes{TILE_M, HALF_N, TILE_M})) return error;
    if (cudaError_t error = limit_to_multiprocessors(&pairs, PAIR)) return error;
    multiply_in_pairs<<<PAIR * pairs, THREADS, sizeof(Shared), stream>>>(maps.a, maps.b, maps.c, m, n, k);
    return cudaGetLastError();
}

// Optimized: tcgen05: one thread multiplies; sums lie in tensor memory.
// predicts: optimized = 0.468 x baseline  (cycles per K-step: 768 to load 48 KB at 64 bytes per cycle; mma.sync takes 1640)
// proves: tcgen05_mma_f16_tf32
// proves: tcgen05_alloc
// proves: tcgen05_relinquish
// proves: tcgen05_dealloc
// proves: tcgen05_commit
// proves: tcgen05_ld
// proves: tma_load_tile
// proves: fewer mma_sync_f16_bf16
// has: mbarrier_expect_tx
// has: spills == 0
//
// Nobody has run this file on a GPU. The head of optimized_tmem_triple_overlap.cu lists what cannot be proved without one. Here it is also
// unproved that two blocks of an SM get half of tensor memory each. The 1280 FMAs per cycle of mma.sync are assumed; an H200 makes 1353.
#include "common/cuda/launch.cuh"
#include "common/cuda/tcgen05.cuh"
#include "common/cuda/tma.cuh"
#include "common/cuda/warpgroup.cuh"
#include "shared_tile.cuh"

constexpr int TILE_N = 256;   // half of tensor memory's columns, so two blocks per SM: one drains while the other multiplies
constexpr int THREADS = 128;  // four warps: one loads, one multiplies, and each can read a quarter of tensor memory
constexpr int STAGES = 2;     // 48 KB each, for two blocks per SM
constexpr uint32_t INSTRUCTION = tcgen05_instruction(TILE_M, TILE_N);

struct alignas(SWIZZLE_PERIOD) Shared {
    struct {
        Element a[TILE_M * TILE_K], b[TILE_N * TILE_K];
    } stage[STAGES];
    uint64_t loaded[STAGES], consumed[STAGES], accumulated;
    uint32_t tensor_memory;
};

// One thread loads the tiles of every K-step, as soon as the K-step STAGES before has been multiplied.
__device__ void load(Shared& shared, const CUtensorMap* a, const CUtensorMap* b, int row, int column, int steps) {
    for (int i = 0; i < steps; i++) {
        const int at = i % STAGES, round = i / STAGES;
        if (round > 0) barrier_wait(&shared.consumed[at], (round - 1) % 2);
        barrier_expect(&shared.loaded[at], sizeof shared.stage[at]);
        load_tile(shared.stage[at].a, a, i * TILE_K, row, &shared.loaded[at]);
        load_tile(shared.stage[at].b, b, i * TILE_K, column, &shared.loaded[at]);
    }
}

// One thread issues all products, four per K-step, without waiting; a commit arrives when the products before it are complete.
__device__ void multiply(Shared& shared, uint32_t sums, int steps) {
    for (int i = 0; i < steps; i++) {
        const int at = i % STAGES;
        const uint64_t a = tcgen05_operand(shared_address(shared.stage[at].a)), b = tcgen05_operand(shared_address(shared.stage[at].b));
        barrier_wait(&shared.loaded[at], i / STAGES % 2);
        tcgen05_fence_after();
#pragma unroll
        for (int l = 0; l < TILE_K / 16; l++) {
            const uint64_t columns = l * 32 >> 4;
            tcgen05_multiply(sums, a + columns, b + columns, INSTRUCTION, i > 0 || l > 0);
        }
        if (i + STAGES < steps) tcgen05_commit(&shared.consumed[at]);  // nobody waits for the last ones
    }
    tcgen05_commit(&shared.accumulated);
}

// A thread has a row of the tile, its warp the 32 lanes of tensor memory that it can read; 64 columns become 8 stores of 16 bytes.
__device__ void drain(uint32_t sums, Element* row, bool inside, int columns) {
#pragma unroll
    for (int first = 0; first < TILE_N; first += 64) {
        uint32_t sum[64];
        tcgen05_load(sum, tensor_address(sums, threadIdx.x / 32 * 32, first));
#pragma unroll
        for (int j = 0; j < 64; j += 8) {
            __nv_bfloat162 rounded[4];
#pragma unroll
            for (int i = 0; i < 4; i++) {
                rounded[i] = __floats2bfloat162_rn(__uint_as_float(sum[j + 2 * i]), __uint_as_float(sum[j + 2 * i + 1]));
            }
            if (inside && first + j < columns) *reinterpret_cast<uint4*>(row + first + j) = reinterpret_cast<const uint4&>(rounded);
        }
    }
}

__global__ void __launch_bounds__(THREADS, 2) multiply_tile(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                                                            Element* __restrict__ c, int m, int n, int k) {
    extern __shared__ __align__(SWIZZLE_PERIOD) unsigned char bytes[];
    auto& shared = *reinterpret_cast<Shared*>(bytes);
    const Tiles<TILE_N> tiles(m, n);
    const int first_row = tiles.row(blockIdx.x), first_column = tiles.column(blockIdx.x), steps = ceil_div(k, TILE_K);
    const int warp = threadIdx.x / 32;
    if (threadIdx.x == 0) {
        for (uint64_t& barrier : shared.loaded) barrier_init(&barrier, 1);
        for (uint64_t& barrier : shared.consumed) barrier_init(&barrier, 1);
        barrier_init(&shared.accumulated, 1);
    }
    // The warp that allocates columns frees them. Their address comes through shared memory, so all wait; fences order tcgen05 after it.
    if (warp == 1) tensor_memory_take(&shared.tensor_memory, TILE_N);
    tcgen05_fence_before();
    __syncthreads();
    tcgen05_fence_after();
    const uint32_t sums = shared.tensor_memory;

    if (warp == 0 && elect()) load(shared, &a, &b, first_row, first_column, steps);
    if (warp == 1 && elect()) multiply(shared, sums, steps);
    __syncwarp();

    barrier_wait(&shared.accumulated, 0);
    tcgen05_fence_after();
    const int row = first_row + threadIdx.x;
    drain(sums, c + size_t(row) * n + first_column, row < m, n - first_column);
    tcgen05_fence_before();
    __syncthreads();
    tcgen05_fence_after();
    if (warp == 1) tensor_memory_give_back(sums, TILE_N);
}

PREPARE(void** state) {
    *state = nullptr;
    return cudaFuncSetAttribute(multiply_tile, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared));
}

LAUNCH(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k, cudaStream_t stream) {
    if (cudaError_t error = Product{a, b, c, m, n, k}.check()) return error;
    CUtensorMap a_map, b_map;
    if (cudaError_t error = encode(&a_map, Tiled<Element>{a, m, k, TILE_M, TILE_K, CU_TENSOR_MAP_SWIZZLE_128B})) return error;
    if (cudaError_t error = encode(&b_map, Tiled<Element>{b, n, k, TILE_N, TILE_K, CU_TENSOR_MAP_SWIZZLE_128B})) return error;
    multiply_tile<<<Tiles<TILE_N>(m, n).count(), THREADS, sizeof(Shared), stream>>>(a_map, b_map, c, m, n, k);
    return cudaGetLastError();
}

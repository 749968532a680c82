// Optimized: the TMA copies 16 KB tiles: no gain over a float4.
// predicts: baseline 0.125 ms = 8 * rows * cols / dram_copy  (32 KB in flight per SM; DRAM needs 10.6 KB)
// predicts: optimized 0.125 ms = 8 * rows * cols / dram_copy  (13 tiles of 16 KB per SM, 208 KB in flight, are no faster)
// needs: tma
// proves: tma_load_tile
// proves: tma_store
// proves: mbarrier_try_wait
// proves: not /\b(LDG|STG)\b/
// has: mbarrier_expect_tx
// has: bulk_commit_wait
#include "common/cuda/launch.cuh"
#include "common/cuda/tma.cuh"

constexpr int WIDE = 256;  // floats per row of a tile, 1 KB; a TMA box has at most 256 elements per dimension
constexpr int HIGH = 16;   // rows per tile; with CUDA's own 1 KB a block takes 17 KB, so 228 KB of shared memory hold 13
constexpr uint32_t TILE_BYTES = WIDE * HIGH * sizeof(float);

// One block per tile: other blocks load while one stores. Registers hold none of the data, and the TMA clips tiles at the edges.
// The TMA writes and reads the tile. No thread does, so no fence is needed between the load and the store.
__global__ void __launch_bounds__(32) copy(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to) {
    __shared__ alignas(128) float tile[HIGH * WIDE];  // PTX ISA, tensor copies: aligned to 128 bytes in shared memory
    __shared__ uint64_t loaded;
    if (threadIdx.x != 0) return;
    const int column = blockIdx.x * WIDE, row = blockIdx.y * HIGH;
    barrier_init(&loaded, 1);
    barrier_expect(&loaded, TILE_BYTES);
    load_tile(tile, &from, column, row, &loaded);
    barrier_wait(&loaded, 0);
    store_tile(&to, column, row, tile);
    wait_until_stores_have_read();  // the tile's shared memory is freed when the block exits
}

LAUNCH(const float* x, float* y, int rows, int cols, cudaStream_t stream) {
    CUtensorMap from, to;
    if (cudaError_t error = encode(&from, Tiled<float>{x, rows, cols, HIGH, WIDE})) return error;
    if (cudaError_t error = encode(&to, Tiled<float>{y, rows, cols, HIGH, WIDE})) return error;
    copy<<<dim3(ceil_div(cols, WIDE), ceil_div(rows, HIGH)), 32, 0, stream>>>(from, to);
    return cudaGetLastError();
}

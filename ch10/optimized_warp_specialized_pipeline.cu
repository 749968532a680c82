// Optimized: roles: one warpgroup loads, two multiply, the TMA stores.
// predicts: baseline 1.44 ms = 16 * (86e-6 + 4e-6) on h200  (16 tiles per SM: 86 us of products, 4 us to start and store)
// predicts: optimized 1.40 ms = 16 * (86e-6 + 1.6e-6) on h200  (starting is hidden; the TMA stores 4 panels in 600 cycles each)
// predicts@shallow: baseline 0.272 ms = 16 * (11e-6 + 6e-6) on h200  (11 us of products, 6 us to start and store)
// predicts@shallow: optimized 0.202 ms = 16 * (11e-6 + 1.6e-6) on h200  (the same store)
// proves: tma_store
// proves: setmaxnreg_inc
// proves: setmaxnreg_dec
// proves: grid <= 132
// has: wgmma_f16_bf16
// has: tma_load_tile
// has: mbarrier_expect_tx
// has: spills == 0
#include "common/cuda/launch.cuh"
#include "shared_matmul_pipeline.cuh"

constexpr int THREADS = (CONSUMERS + 1) * WARPGROUP;

__global__ void __launch_bounds__(THREADS, 1) multiply(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                                                       const __grid_constant__ CUtensorMap c, int m, int n, int k) {
    extern __shared__ __align__(SWIZZLE_PERIOD) unsigned char bytes[];
    RingAndPanels& ring = *reinterpret_cast<RingAndPanels*>(bytes);
    const Tiles<TILE_N> tiles(m, n);
    const int first = blockIdx.x, stride = gridDim.x, steps = ceil_div(k, TILE_K);
    if (threadIdx.x == 0) ring.initialize(CONSUMERS * 4);
    __syncthreads();

    uint32_t step = 0;  // K-steps, counted across tiles
    if (threadIdx.x / WARPGROUP == CONSUMERS) {
        keep_registers<40>();
        if (threadIdx.x == CONSUMERS * WARPGROUP) {
            for (int tile = first; tile < tiles.count(); tile += stride) {
                const int row = tiles.row(tile), column = tiles.column(tile);
                for (int i = 0; i < steps; i++, step++) {
                    const Slot at(step);
                    barrier_wait(&ring.empty[at.stage], at.parity ^ 1);  // the stage is free; parity ^ 1 passes at once on a fresh barrier
                    barrier_expect(&ring.full[at.stage], STAGE_BYTES);
                    load_tile(ring.a[at.stage], &a, i * TILE_K, row, &ring.full[at.stage]);
                    load_tile(ring.b[at.stage], &b, i * TILE_K, column, &ring.full[at.stage]);
                }
            }
        }
    } else {
        take_registers<232>();  // 40 + 2 x 232 = 504 = 3 x 168 registers, as many as at launch
        const int warpgroup = threadIdx.x / WARPGROUP;
        Sums sums;
        Rounded made;
        for (int tile = first; tile < tiles.count(); tile += stride) {
            for (int i = 0; i < steps; i++, step++) {
                const Slot at(step);
                barrier_wait(&ring.full[at.stage], at.parity);
                sums.add(ring, at.stage, i == 0);
                wgmma_wait<0>();  // meanwhile the tensor cores run the other warpgroup's products
                if (threadIdx.x % 32 == 0) barrier_arrive(&ring.empty[at.stage]);
            }
            made.take(sums, tiles.row(tile) + warpgroup * ROWS, tiles.column(tile));
            made.store_all(ring.panel[warpgroup], &c);  // the next tile is being loaded; the last panel's store overlaps it
        }
        if (threadIdx.x % WARPGROUP == 0) wait_until_stores_have_read();
    }
}

PREPARE(void** state) {
    *state = nullptr;
    return cudaFuncSetAttribute(multiply, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(RingAndPanels));
}

LAUNCH(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k, cudaStream_t stream) {
    const Blocks blocks{Tiles<TILE_N>(m, n).count(), THREADS, sizeof(RingAndPanels), stream};
    return launch_persistent(multiply, blocks, Product{a, b, c, m, n, k}, Boxes{TILE_M, TILE_N, ROWS});
}

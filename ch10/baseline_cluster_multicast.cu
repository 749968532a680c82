// Baseline: each block loads its own tiles of a and of b.
// has: wgmma_f16_bf16
// has: tma_load_tile
// has: tma_store
// has: mbarrier_expect_tx
// has: grid <= 132
// has: spills == 0
#include "common/cuda/launch.cuh"
#include "shared_cluster_multicast.cuh"

__global__ void __launch_bounds__(THREADS, 1) multiply(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                                                       const __grid_constant__ CUtensorMap c, int m, int n, int k) {
    extern __shared__ __align__(SWIZZLE_PERIOD) unsigned char bytes[];
    Small::RingAndPanels& ring = *reinterpret_cast<Small::RingAndPanels*>(bytes);
    const SmallTiles tiles(m, n);
    const int first = blockIdx.x, stride = gridDim.x, steps = ceil_div(k, TILE_K);
    if (threadIdx.x == 0) ring.initialize(4);
    __syncthreads();

    uint32_t step = 0;  // K-steps, counted across tiles
    if (threadIdx.x == WARPGROUP) {
        for (int tile = first; tile < tiles.count(); tile += stride) {
            const int row = tiles.row(tile), column = tiles.column(tile);
            for (int i = 0; i < steps; i++, step++) {
                const Small::Slot at(step);
                barrier_wait(&ring.empty[at.stage], at.parity ^ 1);  // the stage is free; parity ^ 1 passes at once on a fresh barrier
                barrier_expect(&ring.full[at.stage], Small::STAGE_BYTES);
                load_tile(ring.a[at.stage], &a, i * TILE_K, row, &ring.full[at.stage]);
                load_tile(ring.b[at.stage], &b, i * TILE_K, column, &ring.full[at.stage]);
            }
        }
    } else if (threadIdx.x < WARPGROUP) {
        const auto give_back = [&](int stage) {
            if (threadIdx.x % 32 == 0) barrier_arrive(&ring.empty[stage]);
        };
        Small::Sums sums;
        Small::Rounded made;
        for (int tile = first; tile < tiles.count(); tile += stride) {
            for (int i = 0; i < steps; i++, step++) {
                const Small::Slot at(step);
                barrier_wait(&ring.full[at.stage], at.parity);
                sums.add(ring, at.stage, i == 0);  // in flight while the step before is waited for
                wgmma_wait<1>();
                if (i > 0) give_back(Small::Slot(step - 1).stage);
            }
            wgmma_wait<0>();
            give_back(Small::Slot(step - 1).stage);
            made.take(sums, tiles.row(tile), tiles.column(tile));
            made.store_all(ring.panel[0], &c);
        }
        if (threadIdx.x % WARPGROUP == 0) wait_until_stores_have_read();
    }
}

PREPARE(void** state) {
    *state = nullptr;
    return cudaFuncSetAttribute(multiply, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Small::RingAndPanels));
}

LAUNCH(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k, cudaStream_t stream) {
    const Blocks blocks{SmallTiles(m, n).count(), THREADS, sizeof(Small::RingAndPanels), stream};
    return launch_persistent(multiply, blocks, Product{a, b, c, m, n, k}, Boxes{ROWS, COLUMNS, ROWS});
}

// Optimized: a cluster's 4 blocks share each tile of b: one L2 read.
// predicts: baseline 278 us on h200  (timed before: rows split cache lines, so a K-step sends 360 requests to the L2)
// predicts: optimized 148 us on h200  (timed before: 180 requests per K-step)
// predicts@whole lines: baseline 118.6 us on h200  (timed before: the H200 joins most reads of the same sectors by itself)
// predicts@whole lines: optimized 113.5 us on h200  (timed before)
// proves: tma_multicast
// proves: cluster_arrive
// proves: cluster_wait
// proves: counter lts__t_sectors_srcunit_tex.sum < 0.7 x baseline
// has: wgmma_f16_bf16
// has: tma_store
// has: mbarrier_expect_tx
// has: grid <= 132
// has: spills == 0
#include "common/cuda/cluster.cuh"
#include "common/cuda/launch.cuh"
#include "shared_cluster_multicast.cuh"

__global__ void __launch_bounds__(THREADS, 1) multiply(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                                                       const __grid_constant__ CUtensorMap c, int m, int n, int k, int cluster) {
    extern __shared__ __align__(SWIZZLE_PERIOD) unsigned char bytes[];
    Small::RingAndPanels& ring = *reinterpret_cast<Small::RingAndPanels*>(bytes);
    const SmallTiles tiles(m, n, cluster);
    const int first = blockIdx.x / cluster, stride = gridDim.x / cluster, steps = ceil_div(k, TILE_K), rank = cluster_rank();
    if (threadIdx.x == 0) {
        ring.initialize(cluster * 4);
        show_barriers_to_cluster();
    }
    cluster_sync();

    uint32_t step = 0;  // K-steps, counted across tiles
    if (threadIdx.x == WARPGROUP) {
        const int part = COLUMNS / cluster * rank;
        for (int tile = first; tile < tiles.count(); tile += stride) {
            const int row = tiles.row(tile) + rank * ROWS, column = tiles.column(tile) + part;
            for (int i = 0; i < steps; i++, step++) {
                const Small::Slot at(step);
                barrier_wait(&ring.empty[at.stage], at.parity ^ 1);        // all blocks have read it; passes at once at first
                barrier_expect(&ring.full[at.stage], Small::STAGE_BYTES);  // bytes of all parts of b, from every block
                load_tile(ring.a[at.stage], &a, i * TILE_K, row, &ring.full[at.stage]);
                load_tile_multicast(ring.b[at.stage] + part * TILE_K, &b, i * TILE_K, column, &ring.full[at.stage], (1 << cluster) - 1);
            }
        }
    } else if (threadIdx.x < WARPGROUP) {
        const auto give_back = [&](int stage) {
            if (threadIdx.x % 32 < cluster) cluster_arrive(&ring.empty[stage], threadIdx.x % 32);
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
            made.take(sums, tiles.row(tile) + rank * ROWS, tiles.column(tile));
            made.store_all(ring.panel[0], &c);
        }
        if (threadIdx.x % WARPGROUP == 0) wait_until_stores_have_read();
    }
    cluster_sync();  // no block exits while a peer may arrive on its barriers
}

PREPARE(void** state) {
    *state = nullptr;
    return cudaFuncSetAttribute(multiply, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Small::RingAndPanels));
}

LAUNCH(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k, int clusterDim, cudaStream_t stream) {
    if (clusterDim < 1 || 8 % clusterDim) return cudaErrorInvalidValue;
    const Clusters clusters{SmallTiles(m, n, clusterDim).count(), clusterDim, THREADS, sizeof(Small::RingAndPanels), stream};
    return launch_persistent(multiply, clusters, Product{a, b, c, m, n, k}, Boxes{ROWS, COLUMNS / clusterDim, ROWS}, clusterDim);
}

// Baseline: a cluster per tile: it starts, multiplies, stores and ends.
// has: tma_multicast
// has: tma_store
// has: wgmma_f16_bf16
// has: setmaxnreg_inc
// has: mbarrier_expect_tx
// has: spills == 0
#include "common/cuda/cluster.cuh"
#include "common/cuda/launch.cuh"
#include "shared_matmul_pipeline.cuh"

constexpr int THREADS = (CONSUMERS + 1) * WARPGROUP;

__global__ void __launch_bounds__(THREADS, 1) multiply(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                                                       const __grid_constant__ CUtensorMap c, int m, int n, int k, int cluster) {
    extern __shared__ __align__(SWIZZLE_PERIOD) unsigned char bytes[];
    RingAndPanels& ring = *reinterpret_cast<RingAndPanels*>(bytes);
    const Tiles<TILE_N> tiles(m, n, cluster);
    const int rank = cluster_rank(), tile = blockIdx.x / cluster;
    const int row = tiles.row(tile) + rank * TILE_M, column = tiles.column(tile), steps = ceil_div(k, TILE_K);
    if (threadIdx.x == 0) {
        ring.initialize(cluster * CONSUMERS * 4);
        show_barriers_to_cluster();
    }
    cluster_sync();

    if (threadIdx.x / WARPGROUP == CONSUMERS) {
        keep_registers<40>();
        if (threadIdx.x == CONSUMERS * WARPGROUP) {
            const int part = TILE_N / cluster * rank;
            for (int step = 0; step < steps; step++) {
                const Slot at(step);
                barrier_wait(&ring.empty[at.stage], at.parity ^ 1);  // all blocks of the cluster have read it; passes at once at first
                barrier_expect(&ring.full[at.stage], STAGE_BYTES);   // bytes of all parts of b, from every block
                load_tile(ring.a[at.stage], &a, step * TILE_K, row, &ring.full[at.stage]);
                load_tile_multicast(ring.b[at.stage] + part * TILE_K, &b, step * TILE_K, column + part, &ring.full[at.stage],
                                    (1 << cluster) - 1);
            }
        }
    } else {
        take_registers<232>();  // 40 + 2 x 232 = 504 = 3 x 168 registers, as many as at launch
        const int warpgroup = threadIdx.x / WARPGROUP;
        Sums sums;
        Rounded made;
        for (int step = 0; step < steps; step++) {
            const Slot at(step);
            barrier_wait(&ring.full[at.stage], at.parity);
            sums.add(ring, at.stage, step == 0);
            wgmma_wait<0>();  // meanwhile the tensor cores run the other warpgroup's products
            if (threadIdx.x % 32 < cluster) cluster_arrive(&ring.empty[at.stage], threadIdx.x % 32);
        }
        made.take(sums, row + warpgroup * ROWS, column);
        made.store_all(ring.panel[warpgroup], &c);
        if (threadIdx.x % WARPGROUP == 0) wait_until_stores_have_read();
    }
    cluster_sync();  // no block exits while a peer may arrive on its barriers
}

PREPARE(void** state) {
    *state = nullptr;
    return cudaFuncSetAttribute(multiply, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(RingAndPanels));
}

LAUNCH(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k, int clusterDim, cudaStream_t stream) {
    if (clusterDim < 1 || 8 % clusterDim) return cudaErrorInvalidValue;
    Maps maps;
    if (cudaError_t error = encode(&maps, Product{a, b, c, m, n, k}, Boxes{TILE_M, TILE_N / clusterDim, ROWS})) return error;
    const Clusters clusters{Tiles<TILE_N>(m, n, clusterDim).count(), clusterDim, THREADS, sizeof(RingAndPanels), stream};
    return clusters.launch(multiply, maps.a, maps.b, maps.c, m, n, k, clusterDim);
}

// Optimized: persistent clusters store a tile while the next multiplies.
// predicts: baseline 1.42 ms = 16 * (86e-6 + 2.6e-6) on h200  (16 tiles per SM: 86 us of products, 2.6 us to start and store)
// predicts: optimized 1.38 ms = 16 * 86e-6 on h200  (starting and storing are hidden under the next tile's products)
// predicts@shallow: baseline 0.250 ms = 16 * (11e-6 + 4.6e-6) on h200  (11 us of products, 4.6 us to start and store)
// predicts@shallow: optimized 0.176 ms = 16 * 11e-6 on h200  (products alone)
// proves: more tma_store
// proves: grid <= 132
// proves: counter sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active > 1.03 x baseline
// The bound: products in a larger share of the time, by (86 + 2.6) / 86 at k = 8192 and by more at k = 1024.
// has: tma_store
// has: tma_multicast
// has: wgmma_f16_bf16
// has: setmaxnreg_inc
// has: mbarrier_expect_tx
// has: spills == 0
#include "common/cuda/cluster.cuh"
#include "common/cuda/launch.cuh"
#include "shared_matmul_pipeline.cuh"

constexpr int THREADS = (CONSUMERS + 1) * WARPGROUP;

// A warpgroup: multiplies a tile, and stores the previous tile in the first K-steps, while their products run. The two warpgroups of a
// block do not wait for each other.
__device__ void multiply(RingAndPanels& ring, const Tiles<TILE_N>& tiles, int steps, int cluster, const CUtensorMap* c) {
    const int first = blockIdx.x / cluster, stride = gridDim.x / cluster, warpgroup = threadIdx.x / WARPGROUP, lane = threadIdx.x % 32;
    uint32_t step = 0;  // K-steps, counted across tiles
    Sums sums;
    Rounded before;  // the previous tile
    const auto begin = [&](bool from_zero) {
        const Slot at(step);
        barrier_wait(&ring.full[at.stage], at.parity);
        sums.add(ring, at.stage, from_zero);
    };
    const auto end = [&] {
        wgmma_wait<0>();  // meanwhile the tensor cores run the other warpgroup's products
        if (lane < cluster) cluster_arrive(&ring.empty[Slot(step).stage], lane);
        step++;
    };
    for (int tile = first; tile < tiles.count(); tile += stride) {
        int i = 0;
        if (tile > first && steps < PANELS) {
            before.store_all(ring.panel[warpgroup], c);
        } else if (tile > first) {
#pragma unroll
            for (; i < PANELS; i++) {
                begin(i == 0);
                before.store(i, ring.panel[warpgroup], c);
                end();
            }
        }
        for (; i < steps; i++) {
            begin(i == 0);
            end();
        }
        before.take(sums, tiles.row(tile) + cluster_rank() * TILE_M + warpgroup * ROWS, tiles.column(tile));
    }
    before.store_all(ring.panel[warpgroup], c);
    if (threadIdx.x % WARPGROUP == 0) wait_until_stores_have_read();
}

__global__ void __launch_bounds__(THREADS, 1) persistent(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                                                         const __grid_constant__ CUtensorMap c, int m, int n, int k, int cluster) {
    extern __shared__ __align__(SWIZZLE_PERIOD) unsigned char bytes[];
    RingAndPanels& ring = *reinterpret_cast<RingAndPanels*>(bytes);
    const Tiles<TILE_N> tiles(m, n, cluster);
    const int rank = cluster_rank(), first = blockIdx.x / cluster, stride = gridDim.x / cluster, steps = ceil_div(k, TILE_K);
    if (threadIdx.x == 0) {
        ring.initialize(cluster * CONSUMERS * 4);
        show_barriers_to_cluster();
    }
    cluster_sync();

    if (threadIdx.x / WARPGROUP == CONSUMERS) {
        keep_registers<40>();
        if (threadIdx.x == CONSUMERS * WARPGROUP) {
            const int part = TILE_N / cluster * rank;
            uint32_t step = 0;  // K-steps, counted across tiles
            for (int tile = first; tile < tiles.count(); tile += stride) {
                const int row = tiles.row(tile) + rank * TILE_M, column = tiles.column(tile);
                for (int i = 0; i < steps; i++, step++) {
                    const Slot at(step);
                    barrier_wait(&ring.empty[at.stage], at.parity ^ 1);  // all blocks of the cluster have read it; passes at once at first
                    barrier_expect(&ring.full[at.stage], STAGE_BYTES);   // bytes of all parts of b, from every block
                    load_tile(ring.a[at.stage], &a, i * TILE_K, row, &ring.full[at.stage]);
                    load_tile_multicast(ring.b[at.stage] + part * TILE_K, &b, i * TILE_K, column + part, &ring.full[at.stage],
                                        (1 << cluster) - 1);
                }
            }
        }
    } else {
        take_registers<232>();  // 40 + 2 x 232 = 504 = 3 x 168 registers, as many as at launch
        multiply(ring, tiles, steps, cluster, &c);
    }
    cluster_sync();  // no block exits while a peer may arrive on its barriers
}

PREPARE(void** state) {
    *state = nullptr;
    return cudaFuncSetAttribute(persistent, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(RingAndPanels));
}

LAUNCH(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k, int clusterDim, cudaStream_t stream) {
    if (clusterDim < 1 || 8 % clusterDim) return cudaErrorInvalidValue;
    const Clusters clusters{Tiles<TILE_N>(m, n, clusterDim).count(), clusterDim, THREADS, sizeof(RingAndPanels), stream};
    return launch_persistent(persistent, clusters, Product{a, b, c, m, n, k}, Boxes{TILE_M, TILE_N / clusterDim, ROWS}, clusterDim);
}

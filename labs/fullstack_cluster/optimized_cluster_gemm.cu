// Optimized: four blocks of a cluster share tiles of both matrices.
// predicts: baseline 0.232 ms = 4 * 64 * 49152 * 1.125 * sm_count / l2 + 4 * 1.6e-6 on h100    (4 waves of 64 steps, 48 KB a step)
// predicts: optimized 0.185 ms = 4 * sm_count * 2 * 128 * 256 * k / bf16 + 4 * 1.6e-6 on h100    (24 KB a step: products take longer)
// proves: tma_multicast
// proves: cluster_arrive
// proves: cluster_wait
// proves: counter lts__t_sectors_srcunit_tex.sum < 0.75 x baseline
// has: wgmma_f16_bf16
// has: tma_store
// has: mbarrier_expect_tx
// has: setmaxnreg_inc
// has: grid <= 132
// has: spills == 0
#include "ch10/shared_matmul_pipeline.cuh"
#include "common/cuda/cluster.cuh"
#include "common/cuda/launch.cuh"

// Of a cluster's four blocks, rank ^ 1 computes the tile of c beside this one's, from the same rows of a. rank ^ 2 computes the tile above
// or below, from the same rows of b. Nothing passes between a block and rank ^ 3.
constexpr int CLUSTER = 4;
constexpr int SHARERS = 3;  // the block itself, rank ^ 1 and rank ^ 2: they read what it loads
constexpr int THREADS = (CONSUMERS + 1) * WARPGROUP;
using Quads = Tiles<2 * TILE_N>;  // of 2 x 2 tiles

__global__ void __launch_bounds__(THREADS, 1) multiply(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                                                       const __grid_constant__ CUtensorMap c, int m, int n, int k) {
    extern __shared__ __align__(SWIZZLE_PERIOD) unsigned char bytes[];
    RingAndPanels& ring = *reinterpret_cast<RingAndPanels*>(bytes);
    const Quads quads(m, n, 2);
    const int first = blockIdx.x / CLUSTER, stride = gridDim.x / CLUSTER, steps = ceil_div(k, TILE_K), rank = cluster_rank();
    const int down = rank / 2, across = rank % 2;  // this block's tile of a quad
    if (threadIdx.x == 0) {
        ring.initialize(SHARERS * CONSUMERS * 4);
        show_barriers_to_cluster();
    }
    cluster_sync();

    uint32_t step = 0;  // of all quads
    if (threadIdx.x / WARPGROUP == CONSUMERS) {
        keep_registers<40>();
        if (threadIdx.x == CONSUMERS * WARPGROUP) {
            const int half_a = across * (TILE_M / 2), half_b = down * (TILE_N / 2);  // what this block loads of the two shared tiles
            const uint16_t beside = 1 << rank | 1 << (rank ^ 1), stacked = 1 << rank | 1 << (rank ^ 2);
            for (int quad = first; quad < quads.count(); quad += stride) {
                const int row = quads.row(quad) + down * TILE_M + half_a, column = quads.column(quad) + across * TILE_N + half_b;
                for (int i = 0; i < steps; i++, step++) {
                    const Slot at(step);
                    barrier_wait(&ring.empty[at.stage], at.parity ^ 1);  // in all three blocks: of the phase before, true at once at first
                    barrier_expect(&ring.full[at.stage], STAGE_BYTES);   // both halves of both tiles, whoever loads them
                    load_tile_multicast(ring.a[at.stage] + half_a * TILE_K, &a, i * TILE_K, row, &ring.full[at.stage], beside);
                    load_tile_multicast(ring.b[at.stage] + half_b * TILE_K, &b, i * TILE_K, column, &ring.full[at.stage], stacked);
                }
            }
        }
    } else {
        take_registers<232>();  // 40 + 2 x 232 = 504 = 3 x 168, with which the block began
        const int warpgroup = threadIdx.x / WARPGROUP, lane = threadIdx.x % 32;
        Sums sums;
        Rounded made;
        for (int quad = first; quad < quads.count(); quad += stride) {
            for (int i = 0; i < steps; i++, step++) {
                const Slot at(step);
                barrier_wait(&ring.full[at.stage], at.parity);
                sums.add(ring, at.stage, i == 0);
                wgmma_wait<0>();  // the other warpgroup's products run on
                if (lane < SHARERS) cluster_arrive(&ring.empty[at.stage], rank ^ lane);
            }
            made.take(sums, quads.row(quad) + down * TILE_M + warpgroup * ROWS, quads.column(quad) + across * TILE_N);
            made.store_all(ring.panel[warpgroup], &c);
        }
        if (threadIdx.x % WARPGROUP == 0) wait_until_stores_have_read();
    }
    cluster_sync();  // peers may still arrive here
}

PREPARE(void** state) {
    *state = nullptr;
    return cudaFuncSetAttribute(multiply, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(RingAndPanels));
}

LAUNCH(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k, cudaStream_t stream) {
    const Clusters clusters{Quads(m, n, 2).count(), CLUSTER, THREADS, sizeof(RingAndPanels), stream};
    return launch_persistent(multiply, clusters, Product{a, b, c, m, n, k}, Boxes{TILE_M / 2, TILE_N / 2, ROWS});
}

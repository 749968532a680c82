// Optimized: stream-K: the tail wave is split by K-steps over all SMs.
// predicts: optimized = 0.971 x persistent_matmul  (15.5 waves instead of 16)
// predicts@medium: optimized = 1 x persistent_matmul  (8 K-steps would be idle, fewer than WORTH, so no tile is split)
// predicts@awkward: optimized = 0.847 x persistent_matmul  (4.1 waves instead of 5, less 8 K-steps to hand partial sums on)
// predicts: baseline 148 ms = m * n * k * 18 / 256 / (sm_count * sm_clock)  (18 cache lines, a cycle each in the L1, per 256 products)
// predicts: optimized 1.41 ms = 1.03 * m * n * k / (0.75 * 2048 * sm_count * sm_clock)  (at 3/4 of the clock; 105x was written, not 108x)
// predicts@medium: baseline 18.5 ms = m * n * k * 18 / 256 / (sm_count * sm_clock)  (the same lines)
// predicts@medium: optimized 0.177 ms = 1.03 * m * n * k / (0.75 * 2048 * sm_count * sm_clock)  (the same rate)
// predicts@awkward: baseline 18.0 ms = m * n * k * 18 / 256 / (sm_count * sm_clock)  (the same lines)
// predicts@awkward: optimized 0.171 ms = 1.03 * m * n * k / (0.75 * 2048 * sm_count * sm_clock)  (the same rate)
// scratch: float partial[132 * 128 * 256]
// scratch: int ready[132 * 2]
// proves: tma_multicast
// proves: tma_store
// proves: wgmma_f16_bf16
// proves: setmaxnreg_inc
// proves: atom_global_return
// has: mbarrier_expect_tx
// has: spills == 0
#include "common/cuda/cluster.cuh"
#include "common/cuda/launch.cuh"
#include "shared_matmul_pipeline.cuh"

constexpr int THREADS = (CONSUMERS + 1) * WARPGROUP;
constexpr int MOST_BLOCKS = 132;  // SMs of an H100 or H200, the only GPUs with wgmma; the scratch holds partial sums of as many blocks
constexpr int WORTH = 16;         // K-steps that must be idle for a split to pay: 128 KB of sums per SM to the L2 and back take about 8

// A cluster's work, piece by piece. First come whole tiles. The last clusters + left tiles are divided: their K-steps, laid end to end, are
// cut into one range per cluster. A range is a tile or longer, so a divided tile has at most two parts, made by neighbouring clusters. A
// cluster walks its range backwards: it first multiplies the beginning of a tile, whose sums it gives to the next cluster, and last the end
// of a tile, for which it takes the sums of the cluster before. It gives before it takes, so no two clusters wait for each other; but the
// cluster before must be resident. PREPARE asks whether the whole grid is (require_together in shared_persistent.cuh).
struct Walk {
    Tiles<TILE_N> tiles;
    int steps, cluster, clusters;
    int tile, begin, end;  // the current piece: K-steps begin to end of a tile

    __device__ Walk(int m, int n, int k, int blocks)
        : tiles(m, n, blocks), steps(ceil_div(k, TILE_K)), cluster(blockIdx.x / blocks), clusters(gridDim.x / blocks) {
        const int count = tiles.count(), left = count % clusters, idle = left ? steps - left * steps / clusters : 0;
        if (count > clusters && idle >= WORTH) {
            whole = count / clusters - 1;
            from = cluster * (clusters + left) * steps / clusters;
            to = (cluster + 1) * (clusters + left) * steps / clusters;
        } else {
            whole = ceil_div(count - cluster, clusters);
            from = to = 0;
        }
    }
    __device__ bool next() {
        if (done < whole) {
            tile = cluster + done++ * clusters, begin = 0, end = steps;
            return true;
        }
        if (from == to) return false;
        const int divided = (to - 1) / steps, first = divided * steps;
        tile = whole * clusters + divided, begin = max(from - first, 0), end = to - first;
        to = first + begin;
        return true;
    }
    __device__ bool begins() const { return begin == 0; }
    __device__ bool ends() const { return end == steps; }

  private:
    int done = 0, whole;  // whole tiles: finished, and in all
    int from, to;         // the rest of the range, in K-steps of the divided tiles laid end to end
};

// One thread issues the loads of all pieces, without a pause between them.
__device__ void load(Ring& ring, Walk walk, int cluster, const CUtensorMap* a, const CUtensorMap* b) {
    const int rank = cluster_rank(), part = TILE_N / cluster * rank;
    uint32_t step = 0;
    while (walk.next()) {
        const int row = walk.tiles.row(walk.tile) + rank * TILE_M, column = walk.tiles.column(walk.tile) + part;
        for (int i = walk.begin; i < walk.end; i++, step++) {
            const Slot at(step);
            barrier_wait(&ring.empty[at.stage], at.parity ^ 1);  // all blocks of the cluster have read it; passes at once at first
            barrier_expect(&ring.full[at.stage], STAGE_BYTES);   // bytes of all parts of b, from every block
            load_tile(ring.a[at.stage], a, i * TILE_K, row, &ring.full[at.stage]);
            load_tile_multicast(ring.b[at.stage] + part * TILE_K, b, i * TILE_K, column, &ring.full[at.stage], (1 << cluster) - 1);
        }
    }
}

// Hands a warpgroup's sums of the first part of a tile to the cluster that finishes the tile, through memory, 16 bytes per thread.
struct Partial {
    float4* sums;
    int* ready;  // 1 while sums wait to be taken, else 0

    __device__ Partial(float* partial, int* ready, int block)
        : sums(reinterpret_cast<float4*>(partial) + (block * CONSUMERS + threadIdx.x / WARPGROUP) * (ROWS * TILE_N / 4)),
          ready(ready + block * CONSUMERS + threadIdx.x / WARPGROUP) {}

    __device__ void give(Sums& from) {
        hold(from.sum);
#pragma unroll
        for (int i = 0; i < TILE_N / 2; i += 4) {
            sums[i / 4 * WARPGROUP + threadIdx.x % WARPGROUP] = make_float4(from.sum[i], from.sum[i + 1], from.sum[i + 2], from.sum[i + 3]);
        }
        __threadfence();
        warpgroup_sync(1 + threadIdx.x / WARPGROUP);
        if (threadIdx.x % WARPGROUP == 0) atomicExch(ready, 1);
    }
    __device__ void take(Sums& to) {
        if (threadIdx.x % WARPGROUP == 0) {
            while (atomicCAS(ready, 1, 0) != 1) {
            }
            __threadfence();
        }
        warpgroup_sync(1 + threadIdx.x / WARPGROUP);
        hold(to.sum);
#pragma unroll
        for (int i = 0; i < TILE_N / 2; i += 4) {
            const float4 first = __ldcg(&sums[i / 4 * WARPGROUP + threadIdx.x % WARPGROUP]);
            to.sum[i] += first.x, to.sum[i + 1] += first.y, to.sum[i + 2] += first.z, to.sum[i + 3] += first.w;
        }
    }
};

// A warpgroup: multiplies a piece, and meanwhile stores the previous tile. A piece that ends a tile is rounded; another one is given to the
// next cluster. The two warpgroups of a block do not wait for each other.
__device__ void multiply(RingAndPanels& shared, Walk walk, int cluster, const CUtensorMap* c, float* partial, int* ready) {
    const int warpgroup = threadIdx.x / WARPGROUP, lane = threadIdx.x % 32;
    Sums sums;
    Rounded before;        // the previous tile
    bool waiting = false;  // the previous tile still has to be stored
    uint32_t step = 0;
    const auto begin = [&](bool from_zero) {
        const Slot at(step);
        barrier_wait(&shared.full[at.stage], at.parity);
        sums.add(shared, at.stage, from_zero);
    };
    const auto end = [&] {
        wgmma_wait<0>();  // meanwhile the tensor cores run the other warpgroup's products
        if (lane < cluster) cluster_arrive(&shared.empty[Slot(step).stage], lane);
        step++;
    };
    while (walk.next()) {
        int i = walk.begin;
        if (waiting && walk.end - i < PANELS) {
            before.store_all(shared.panel[warpgroup], c);
        } else if (waiting) {
#pragma unroll
            for (int panel = 0; panel < PANELS; panel++, i++) {
                begin(panel == 0);
                before.store(panel, shared.panel[warpgroup], c);
                end();
            }
        }
        for (; i < walk.end; i++) {
            begin(i == walk.begin);
            end();
        }
        waiting = walk.ends();
        if (waiting) {
            if (!walk.begins()) Partial(partial, ready, blockIdx.x - cluster).take(sums);
            const int row = walk.tiles.row(walk.tile) + cluster_rank() * TILE_M + warpgroup * ROWS;
            before.take(sums, row, walk.tiles.column(walk.tile));
        } else {
            Partial(partial, ready, blockIdx.x).give(sums);
        }
    }
    if (waiting) before.store_all(shared.panel[warpgroup], c);
    if (threadIdx.x % WARPGROUP == 0) wait_until_stores_have_read();
}

__global__ void __launch_bounds__(THREADS, 1)
    matmul(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, const __grid_constant__ CUtensorMap c, int m,
           int n, int k, int cluster, float* partial, int* ready) {
    extern __shared__ __align__(SWIZZLE_PERIOD) unsigned char bytes[];
    RingAndPanels& shared = *reinterpret_cast<RingAndPanels*>(bytes);
    if (threadIdx.x == 0) {
        shared.initialize(cluster * CONSUMERS * 4);
        show_barriers_to_cluster();
    }
    cluster_sync();

    if (threadIdx.x / WARPGROUP == CONSUMERS) {
        keep_registers<40>();
        if (threadIdx.x == CONSUMERS * WARPGROUP) load(shared, Walk(m, n, k, cluster), cluster, &a, &b);
    } else {
        take_registers<232>();  // 40 + 2 x 232 = 504 = 3 x 168 registers, as many as at launch
        multiply(shared, Walk(m, n, k, cluster), cluster, &c, partial, ready);
    }
    cluster_sync();  // no block exits while a peer may arrive on its barriers
}

PREPARE(int* ready, int clusterDim, cudaStream_t stream, void** state) {
    *state = nullptr;
    if (clusterDim < 1 || 8 % clusterDim) return cudaErrorInvalidValue;
    if (cudaError_t error = cudaMemsetAsync(ready, 0, MOST_BLOCKS * CONSUMERS * sizeof(int), stream)) return error;
    const Clusters most{MOST_BLOCKS / clusterDim, clusterDim, THREADS, sizeof(RingAndPanels), stream};
    if (cudaError_t error = cudaFuncSetAttribute(matmul, cudaFuncAttributeMaxDynamicSharedMemorySize, most.shared_bytes)) return error;
    return most.require_together(matmul);
}

LAUNCH(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k, int clusterDim, float* partial, int* ready,
       cudaStream_t stream) {
    if (clusterDim < 1 || 8 % clusterDim) return cudaErrorInvalidValue;
    const int most = min(Tiles<TILE_N>(m, n, clusterDim).count(), MOST_BLOCKS / clusterDim);
    // Walk multiplies a cluster's number, the tiles left and the K-steps in an int.
    if (size_t(most) * 2 * most * ceil_div(k, TILE_K) >= 1u << 31) return cudaErrorInvalidValue;
    const Clusters clusters{most, clusterDim, THREADS, sizeof(RingAndPanels), stream};
    const Boxes rows{TILE_M, TILE_N / clusterDim, ROWS};
    return launch_persistent(matmul, clusters, Product{a, b, c, m, n, k}, rows, clusterDim, partial, ready);
}

// A ring of stages in each of two blocks: each loads half a tile for both, and tells both what it has read. The sums of x's columns.
#include "common/cuda/cluster.cuh"
#include "common/cuda/launch.cuh"
#include "common/cuda/tma.cuh"

constexpr int CLUSTER = 2, STAGES = 2, THREADS = 64;
constexpr int ROWS = 16, COLS = 64, HALF = ROWS / CLUSTER;  // of a tile

struct Shared {
    __nv_bfloat16 tile[STAGES][ROWS * COLS];
    uint64_t loaded[STAGES], consumed[STAGES];
};

__global__ void __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS)
    column_sums(const __grid_constant__ CUtensorMap x, float* y, int steps) {
    extern __shared__ __align__(1024) unsigned char bytes[];
    auto& shared = *reinterpret_cast<Shared*>(bytes);
    const int rank = cluster_rank(), lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        for (uint64_t& barrier : shared.loaded) barrier_init(&barrier, 1);
        for (uint64_t& barrier : shared.consumed) barrier_init(&barrier, CLUSTER);
        show_barriers_to_cluster();
    }
    cluster_sync();
    if (threadIdx.x == 0) {
        for (int step = 0; step < steps; step++) {
            const int stage = step % STAGES, parity = step / STAGES % 2;
            barrier_wait(&shared.consumed[stage], parity ^ 1);
            barrier_expect(&shared.loaded[stage], sizeof shared.tile[stage]);
            load_tile_multicast(shared.tile[stage] + rank * HALF * COLS, &x, 0, step * ROWS + rank * HALF, &shared.loaded[stage], 3);
        }
    }
    if (threadIdx.x >= 32) {
        float sum = 0;
        for (int step = 0; step < steps; step++) {
            const int stage = step % STAGES, parity = step / STAGES % 2;
            barrier_wait(&shared.loaded[stage], parity);
            const auto* tile = reinterpret_cast<const uint16_t*>(shared.tile[stage]);
            for (int row = 0; row < ROWS; row++) sum += __uint_as_float(uint32_t(tile[row * COLS + rank * 32 + lane]) << 16);
            __syncwarp();
            if (lane == 0) {
                for (int peer = 0; peer < CLUSTER; peer++) cluster_arrive(&shared.consumed[stage], peer);
            }
        }
        y[blockIdx.x * 32 + lane] = sum;
    }
    cluster_sync();
}

LAUNCH(const __nv_bfloat16* x, float* y, int rows, int blocks, cudaStream_t stream) {
    CUtensorMap map;
    if (cudaError_t error = encode(&map, Tiled<__nv_bfloat16>{x, rows, COLS, HALF, COLS})) return error;
    column_sums<<<blocks, THREADS, sizeof(Shared), stream>>>(map, y, ceil_div(rows, ROWS));
    return cudaGetLastError();
}

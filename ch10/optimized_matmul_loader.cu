// Optimized: one warpgroup only loads; mbarriers hand stages over.
// predicts: loader = 1 x wgmma  (the TMA already ran three K-steps ahead, and barriers fell under running products)
// proves: setmaxnreg_inc
// proves: setmaxnreg_dec
// proves: wgmma_f16_bf16
// has: tma_load_tile
// has: mbarrier_expect_tx
// has: spills == 0
#include "common/cuda/launch.cuh"
#include "shared_matmul_pipeline.cuh"

constexpr int THREADS = (CONSUMERS + 1) * WARPGROUP;

__global__ void __launch_bounds__(THREADS, 1)
    multiply(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, Element* c, int m, int n, int k) {
    extern __shared__ __align__(SWIZZLE_PERIOD) unsigned char bytes[];
    Ring& ring = *reinterpret_cast<Ring*>(bytes);
    const Tiles<TILE_N> tiles(m, n);
    const int row = tiles.row(blockIdx.x), column = tiles.column(blockIdx.x), steps = ceil_div(k, TILE_K);
    if (threadIdx.x == 0) ring.initialize(CONSUMERS * 4);
    __syncthreads();

    if (threadIdx.x / WARPGROUP == CONSUMERS) {
        keep_registers<40>();
        if (threadIdx.x == CONSUMERS * WARPGROUP) {
            for (int step = 0; step < steps; step++) {
                const Slot at(step);
                barrier_wait(&ring.empty[at.stage], at.parity ^ 1);  // the stage is free; parity ^ 1 passes at once on a fresh barrier
                barrier_expect(&ring.full[at.stage], STAGE_BYTES);
                load_tile(ring.a[at.stage], &a, step * TILE_K, row, &ring.full[at.stage]);
                load_tile(ring.b[at.stage], &b, step * TILE_K, column, &ring.full[at.stage]);
            }
        }
    } else {
        take_registers<232>();  // 40 + 2 x 232 = 504 = 3 x 168 registers, as many as at launch
        Sums sums;
        for (int step = 0; step < steps; step++) {
            const Slot at(step);
            barrier_wait(&ring.full[at.stage], at.parity);
            sums.add(ring, at.stage, step == 0);
            // Unlike in the step before, where one K-step's products run on. The other warpgroup's keep the tensor cores busy meanwhile.
            wgmma_wait<0>();
            if (threadIdx.x % 32 == 0) barrier_arrive(&ring.empty[at.stage]);
        }
        sums.store(c, row, column, m, n);
    }
}

PREPARE(void** state) {
    *state = nullptr;
    return cudaFuncSetAttribute(multiply, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Ring));
}

LAUNCH(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k, cudaStream_t stream) {
    CUtensorMap a_map, b_map;
    if (cudaError_t error = encode(&a_map, Tiled<Element>{a, m, k, TILE_M, TILE_K, CU_TENSOR_MAP_SWIZZLE_128B})) return error;
    if (cudaError_t error = encode(&b_map, Tiled<Element>{b, n, k, TILE_N, TILE_K, CU_TENSOR_MAP_SWIZZLE_128B})) return error;
    multiply<<<Tiles<TILE_N>(m, n).count(), THREADS, sizeof(Ring), stream>>>(a_map, b_map, c, m, n, k);
    return cudaGetLastError();
}

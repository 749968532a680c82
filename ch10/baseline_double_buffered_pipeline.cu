// Baseline: mma.sync on tensor cores; one buffer: load, then multiply.
// has: mma_sync_f16_bf16
// has: ldmatrix
// has: spills == 0
#include "common/cuda/launch.cuh"
#include "shared_mma_tile.cuh"

__global__ void __launch_bounds__(THREADS, 1) multiply(Product x) {
    __shared__ Stage stage;
    const Tiles<TILE_N> tiles(x.m, x.n);
    const int row = tiles.row(blockIdx.x), column = tiles.column(blockIdx.x);
    Sums sums;
    for (int first = 0; first < x.k; first += TILE_K) {
        Share<TILE_M, THREADS> a;
        Share<TILE_N, THREADS> b;
        a.load(x.a, row, first, x.m, x.k);
        b.load(x.b, column, first, x.n, x.k);
        __syncthreads();  // all threads have read the previous tile
        a.store(stage.a);
        b.store(stage.b);
        __syncthreads();
        sums.add(stage);
    }
    __syncthreads();
    sums.store(&stage, x, row, column);
}

LAUNCH(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k, cudaStream_t stream) {
    const Product product{a, b, c, m, n, k};
    if (cudaError_t error = product.check()) return error;
    multiply<<<Tiles<TILE_N>(m, n).count(), THREADS, 0, stream>>>(product);
    return cudaGetLastError();
}

// Baseline: one stage: all threads load a step, then multiply it.
// has: wgmma_f16_bf16
#include "common/cuda/launch.cuh"
#include "common/cuda/tma.cuh"
#include "common/cuda/wgmma.cuh"
#include "shared_tile.cuh"

constexpr int TILE_N = 128;
constexpr int THREADS = 256;  // two warpgroups with 64 rows of the tile each: 64 sums per thread

__global__ void __launch_bounds__(THREADS, 2)
    multiply(const Element* __restrict__ a, const Element* __restrict__ b, Element* __restrict__ c, int m, int n, int k) {
    __shared__ alignas(SWIZZLE_PERIOD) unsigned char a_tile[TILE_M * SWIZZLE_ROW], b_tile[TILE_N * SWIZZLE_ROW];
    const Tiles<TILE_N> tiles(m, n);
    const int first_row = tiles.row(blockIdx.x), first_column = tiles.column(blockIdx.x);
    const int warpgroup = threadIdx.x / 128;
    const uint64_t a_from = wgmma_operand(shared_address(a_tile + warpgroup * 64 * SWIZZLE_ROW));
    const uint64_t b_from = wgmma_operand(shared_address(b_tile));

    float sum[64];
    for (int first = 0; first < k; first += TILE_K) {
        Share<TILE_M, THREADS> a_share;
        Share<TILE_N, THREADS> b_share;
        a_share.load(a, first_row, first, m, k);
        b_share.load(b, first_column, first, n, k);
        __syncthreads();  // both warpgroups have multiplied the previous tiles
        a_share.store(a_tile);
        b_share.store(b_tile);
        show_to_async_proxy();
        __syncthreads();
        hold(sum);
        wgmma_fence();
#pragma unroll
        for (int l = 0; l < TILE_K / 16; l++) {
            const uint64_t columns = l * 32 >> 4;
            wgmma_64x128x16(sum, a_from + columns, b_from + columns, first > 0 || l > 0);
        }
        wgmma_commit();
        wgmma_wait<0>();
        hold(sum);
    }

    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int row = first_row + threadIdx.x / 32 * 16 + lane / 4 + 8 * i;
#pragma unroll
        for (int j = 0; j < TILE_N / 8; j++) {
            const int column = first_column + 8 * j + lane % 4 * 2;
            if (row < m && column < n) {
                *reinterpret_cast<__nv_bfloat162*>(c + size_t(row) * n + column) =
                    __floats2bfloat162_rn(sum[4 * j + 2 * i], sum[4 * j + 2 * i + 1]);
            }
        }
    }
}

LAUNCH(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k, cudaStream_t stream) {
    if (cudaError_t error = Product{a, b, c, m, n, k}.check()) return error;
    multiply<<<Tiles<TILE_N>(m, n).count(), THREADS, 0, stream>>>(a, b, c, m, n, k);
    return cudaGetLastError();
}

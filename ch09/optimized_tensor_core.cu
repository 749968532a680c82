// Optimized: mma.sync on tensor cores: 2048 FMAs per instruction.
// predicts: optimized = 0.129 x baseline  (704 cycles of the L1 per pair of tiles instead of 5440 to issue; mma.sync takes 410)
// proves: mma_sync_f16_bf16
// proves: fewer ffma
// has: ldmatrix
// has: ldmatrix_trans
// has: spills == 0
#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"
#include "shared_bf16_tiles.cuh"
#include "shared_mma.cuh"

template <bool ALIGNED>
__global__ void __launch_bounds__(THREADS, 2) multiply(Product x) {
    __shared__ Tiles tiles[2];
    // Warps are 2 down and 4 across: each makes 64 x 32 of c, by 4 x 4 products of 16 x 8.
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = warp / 4 * 64, col = warp % 4 * 32;
    float sum[4][4][4] = {};
    Groups next = fetch<ALIGNED>(x, 0);
    for (int first = 0, now = 0; first < x.k; first += DEPTH, now ^= 1) {
        put(tiles[now], next);
        __syncthreads();  // one barrier per tile: past it, all threads have read the pair of tiles that is written next
        next = fetch<ALIGNED>(x, first + DEPTH);
#pragma unroll
        for (int l = 0; l < DEPTH; l += 16) {
            // Per 16 mma.sync: 6 ldmatrix of 512 bytes, 4 for a and 2 for b. A lane gives the address of 16 bytes: 16 rows, 2 across.
            unsigned a[4][4], b[2][4];
#pragma unroll
            for (int i = 0; i < 4; i++) ldmatrix(a[i], &tiles[now].a[row + 16 * i + lane % 16][l + lane / 16 * 8]);
#pragma unroll
            for (int j = 0; j < 2; j++) ldmatrix_transposed(b[j], &tiles[now].b[l + lane % 16][col + 16 * j + lane / 16 * 8]);
#pragma unroll
            for (int i = 0; i < 4; i++) {
#pragma unroll
                for (int j = 0; j < 4; j++) mma(sum[i][j], a[i], b[j / 2] + j % 2 * 2);
            }
        }
    }
    // Of a 16 x 8 result a lane has two pairs, 8 rows apart; four lanes hold a row of 32 bytes, a sector.
#pragma unroll
    for (int i = 0; i < 4; i++) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int r = blockIdx.y * TILE + row + 16 * i + lane / 4 + 8 * half;
                const int c = blockIdx.x * TILE + col + 8 * j + lane % 4 * 2;
                float* to = x.c + size_t(r) * x.n + c;
                const float* pair = sum[i][j] + 2 * half;
                if (ALIGNED && r < x.m && c < x.n) *reinterpret_cast<float2*>(to) = {pair[0], pair[1]};
                if (!ALIGNED && r < x.m && c < x.n) to[0] = pair[0];
                if (!ALIGNED && r < x.m && c + 1 < x.n) to[1] = pair[1];
            }
        }
    }
}

LAUNCH(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c, int m, int n, int k, cudaStream_t stream) {
    dim3 grid(ceil_div(n, TILE), ceil_div(m, TILE));
    auto kernel = n % GROUP == 0 && k % GROUP == 0 && aligned(16, a, b, c) ? multiply<true> : multiply<false>;
    kernel<<<grid, THREADS, 0, stream>>>(Product{a, b, c, m, n, k});
    return cudaGetLastError();
}

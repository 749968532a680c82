// Baseline: CUDA cores: each BF16 is converted, then multiplied.
#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"
#include "shared_bf16_tiles.cuh"

// Two bf16 in 32 bits: the one at the lower address is the lower half. A bf16 is the upper half of the float of its value.
__device__ float lower(unsigned pair) { return __uint_as_float(pair << 16); }
__device__ float upper(unsigned pair) { return __uint_as_float(pair & 0xffff0000u); }

template <bool ALIGNED>
__global__ void __launch_bounds__(THREADS, 2) multiply(Product x) {
    __shared__ Tiles tiles[2];
    // Warps are 4 down and 2 across; the lanes of a warp are 4 down and 8 across. A thread's rows are 4 apart, its 8 columns adjacent.
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const int row = warp / 2 * 32 + lane / 8, col = warp % 2 * 64 + lane % 8 * 8;
    float sum[8][8] = {};
    Groups next = fetch<ALIGNED>(x, 0);
    for (int first = 0, now = 0; first < x.k; first += DEPTH, now ^= 1) {
        put(tiles[now], next);
        __syncthreads();  // one barrier per tile: past it, all threads have read the pair of tiles that is written next
        next = fetch<ALIGNED>(x, first + DEPTH);
#pragma unroll 1
        for (int l = 0; l < DEPTH; l += 2) {
            // Per 128 FMAs: 8 loads of 4 bytes, 2 of 16 bytes, and 32 conversions, because no FMA takes bf16 and sums in fp32.
            unsigned a_part[8];
#pragma unroll
            for (int i = 0; i < 8; i++) a_part[i] = *reinterpret_cast<const unsigned*>(&tiles[now].a[row + 4 * i][l]);
#pragma unroll
            for (int step = 0; step < 2; step++) {
                const uint4 b_part = *reinterpret_cast<const uint4*>(&tiles[now].b[l + step][col]);
                const float b[8] = {lower(b_part.x), upper(b_part.x), lower(b_part.y), upper(b_part.y),
                                    lower(b_part.z), upper(b_part.z), lower(b_part.w), upper(b_part.w)};
#pragma unroll
                for (int i = 0; i < 8; i++) {
                    const float a = step == 0 ? lower(a_part[i]) : upper(a_part[i]);
#pragma unroll
                    for (int j = 0; j < 8; j++) sum[i][j] = fmaf(a, b[j], sum[i][j]);
                }
            }
        }
    }
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const int r = blockIdx.y * TILE + row + 4 * i, first = blockIdx.x * TILE + col;
        float* to = x.c + size_t(r) * x.n + first;
        if (ALIGNED && r < x.m && first < x.n) {
            *reinterpret_cast<float4*>(to) = {sum[i][0], sum[i][1], sum[i][2], sum[i][3]};
            *reinterpret_cast<float4*>(to + 4) = {sum[i][4], sum[i][5], sum[i][6], sum[i][7]};
        }
#pragma unroll
        for (int j = 0; j < 8; j++) {
            if (!ALIGNED && r < x.m && first + j < x.n) to[j] = sum[i][j];
        }
    }
}

LAUNCH(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c, int m, int n, int k, cudaStream_t stream) {
    dim3 grid(ceil_div(n, TILE), ceil_div(m, TILE));
    auto kernel = n % GROUP == 0 && k % GROUP == 0 && aligned(16, a, b, c) ? multiply<true> : multiply<false>;
    kernel<<<grid, THREADS, 0, stream>>>(Product{a, b, c, m, n, k});
    return cudaGetLastError();
}

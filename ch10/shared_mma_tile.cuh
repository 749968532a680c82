// c = a b^T on mma.sync: a block makes 128 x 256 of c from tiles in shared memory, in K-steps of 64; a warp makes 64 x 64 of them.
#pragma once
#include "ch09/shared_mma.cuh"
#include "common/cuda/launch.cuh"
#include "common/cuda/operands.cuh"
#include "shared_tile.cuh"

// mma.sync was assumed to make 1280 FMAs per SM and cycle, 5/8 of wgmma's rate: on Hopper it reaches 62.9 % of the peak on average
// (arXiv:2501.12084, section 6.2). `peak` has measured 1353 on an H200 since. At 1280, a warp's products of 64 x 64 x 16 take 51 cycles.
// Shared memory takes 32 cycles to deliver their operands and 12 to be filled. A tile of 64 x 32 would take 26 cycles of products, 24 to
// deliver operands and 8 to fill: too close. A K-step asks the L2 for 30 bytes per cycle; with half the width it would ask for 40.
constexpr int TILE_N = 256;
constexpr int THREADS = 256;  // 8 warps, 2 down and 4 across: 128 sums per thread, so one block per SM
constexpr int PARTS = TILE_K / 16;

// The tiles of a K-step, 48 KB.
struct alignas(SWIZZLE_PERIOD) Stage {
    unsigned char a[TILE_M * SWIZZLE_ROW], b[TILE_N * SWIZZLE_ROW];
};

// The operands of a warp for 16 values of k: 64 rows of a and 64 rows of b. Both are K-major, so no ldmatrix transposes. The tiles are
// swizzled, so the 8 rows that ldmatrix reads together begin in 8 different groups of four banks.
struct Fragments {
    unsigned a[4][4], b[4][4];

    // A quarter of them: 16 rows of a and 16 rows of b.
    __device__ void load(int quarter, const Stage& stage, int part) {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        const int a_row = warp / 4 * 64 + lane % 16, b_row = warp % 4 * 64 + lane / 16 * 8 + lane % 8;
        ldmatrix(a[quarter], stage.a + swizzled(a_row + 16 * quarter, 2 * part + lane / 16));
        ldmatrix(b[quarter], stage.b + swizzled(b_row + 16 * quarter, 2 * part + lane / 8 % 2));
    }
    __device__ void load(const Stage& stage, int part) {
#pragma unroll
        for (int quarter = 0; quarter < 4; quarter++) load(quarter, stage, part);
    }
};

// A warp's 64 x 64 of c, in 4 x 8 products of 16 x 8.
struct Sums {
    float of[4][8][4] = {};

    // Multiplies `now`. Before each 8 products it loads a quarter of `next`, the fragments of the following part, if there is one.
    __device__ void add(const Fragments& now, Fragments& next, const Stage& stage, int part) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (part < PARTS) next.load(i, stage, part);
#pragma unroll
            for (int j = 0; j < 8; j++) mma(of[i][j], now.a[i], now.b[j / 2] + j % 2 * 2);
        }
    }
    // A whole K-step, with two sets of fragments: one is loaded while the other is multiplied.
    __device__ void add(const Stage& stage) {
        Fragments turns[2];
        turns[0].load(stage, 0);
#pragma unroll
        for (int part = 0; part < PARTS; part++) add(turns[part % 2], turns[(part + 1) % 2], stage, part + 1);
    }

    // Stores to c, where the block's tile begins at (row, column), rounded to bf16. Each warp stages 32 rows at a time in 4 KB of shared
    // memory of its own: four lanes write 16 bytes of a row, then eight lanes read 128 bytes and store a whole cache line.
    __device__ void store(void* shared, const Product& x, int row, int column) const {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        unsigned char* panel = static_cast<unsigned char*>(shared) + warp * 32 * SWIZZLE_ROW;
        const int first_row = row + warp / 4 * 64 + lane / 8, at_column = column + warp % 4 * 64 + lane % 8 * 8;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            __syncwarp();
#pragma unroll
            for (int i = 0; i < 32; i++) {
                const float* pair = &of[2 * half + i / 16][i / 2 % 8][i % 2 * 2];
                const int panel_row = i / 16 * 16 + i % 2 * 8 + lane / 4;
                *reinterpret_cast<__nv_bfloat162*>(panel + swizzled(panel_row, i / 2 % 8) + lane % 4 * 4) =
                    __floats2bfloat162_rn(pair[0], pair[1]);
            }
            __syncwarp();
#pragma unroll
            for (int i = 0; i < 32; i += 4) {
                const int at_row = first_row + 32 * half + i;
                if (at_row < x.m && at_column < x.n) {
                    *reinterpret_cast<uint4*>(x.c + size_t(at_row) * x.n + at_column) =
                        *reinterpret_cast<const uint4*>(panel + swizzled(i + lane / 8, lane % 8));
                }
            }
        }
    }
};

// c = a b^T on mma.sync: a block makes 128 x 256 of c from tiles of a and b in shared memory, in steps of 64, and a warp 64 x 64 of it.
#pragma once
#include "ch09/shared_mma.cuh"
#include "common/cuda/launch.cuh"
#include "common/cuda/operands.cuh"
#include "shared_tile.cuh"

// mma.sync is taken to make 1280 FMAs a cycle, 5/8 of what wgmma makes: on Hopper it was found to reach 62.9 % of the peak, on average
// (arXiv:2501.12084, section 6.2); `peak` has found 1353 on an H200 since. At 1280 a warp's 64 x 64 x 16 take 51 cycles, and shared
// memory 32 to read for them and 12 to be filled; 64 x 32 would take 26, and shared memory 24 and 8. A step asks the L2 for 30 bytes a
// cycle, half as wide for 40.
constexpr int TILE_N = 256;
constexpr int THREADS = 256;  // 8 warps, 2 down and 4 across: 128 sums a thread, so one block has an SM's registers
constexpr int PARTS = TILE_K / 16;

// The tiles of a step, 48 KB.
struct alignas(SWIZZLE_PERIOD) Stage {
    unsigned char a[TILE_M * SWIZZLE_ROW], b[TILE_N * SWIZZLE_ROW];
};

// What a warp multiplies at once, of 16 columns: 64 rows of a and 64 of b, both K-major, so no ldmatrix transposes. The 8 rows that
// are read together begin in 8 different fours of banks, as the tiles are swizzled.
struct Fragments {
    unsigned a[4][4], b[4][4];

    // A quarter of them, 16 rows of each.
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

    // Multiplies `now`; for every 8 products a quarter of `next` is read, from another part, if there is one.
    __device__ void add(const Fragments& now, Fragments& next, const Stage& stage, int part) {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (part < PARTS) next.load(i, stage, part);
#pragma unroll
            for (int j = 0; j < 8; j++) mma(of[i][j], now.a[i], now.b[j / 2] + j % 2 * 2);
        }
    }
    // A whole step.
    __device__ void add(const Stage& stage) {
        Fragments turns[2];
        turns[0].load(stage, 0);
#pragma unroll
        for (int part = 0; part < PARTS; part++) add(turns[part % 2], turns[(part + 1) % 2], stage, part + 1);
    }

    // To c, whose tile begins at (row, column), rounded to bf16: 32 rows at a time through 4 KB of shared memory that are the warp's own.
    // A quad writes 16 bytes of a row there, then 8 lanes read 128 bytes, swizzled like the tiles, and store a whole line.
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

// What both sides of cluster_multicast share: tiles so small, 64 x 128, that a step waits for its loads and not for its products.
#pragma once
#include "shared_matmul_pipeline.cuh"

// A step is 24 KB, and a ring of eight 192 of the 227 KB that a block may have. Its four products read all of it once, 24 KB more, in 256
// cycles: with what the TMA writes, shared memory takes 384 for it, at 128 bytes each.
constexpr int COLUMNS = 128;
using Small = Pipeline<1, COLUMNS, 8>;
constexpr int THREADS = WARPGROUP + 32;  // a warpgroup multiplies, with 64 sums a thread; of the warp beside it one thread loads

// The tiles of c by number, `stacked` of them, one below the other, with one number.
struct SmallTiles : Tiles<COLUMNS> {
    __host__ __device__ SmallTiles(int m, int n, int stacked = 1) : Tiles(m, n, stacked) {
        rows = ROWS * stacked;
        down = ceil_div(m, rows);
    }
};

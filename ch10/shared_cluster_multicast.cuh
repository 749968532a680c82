// Shared by both sides of cluster_multicast: tiles so small, 64 x 128, that a K-step waits for its loads and not for its products.
#pragma once
#include "shared_matmul_pipeline.cuh"

// A K-step is 24 KB, so a ring of eight stages takes 192 KB of the 227 KB that a block may have. The TMA writes the 24 KB and the four
// products read them: 48 KB through shared memory, 384 cycles at 128 bytes per cycle. The products alone take 256 cycles. An H200 took
// 363 cycles per K-step with whole lines, so one of the rates, or the clock of that measurement, is off by a twentieth.
constexpr int COLUMNS = 128;
using Small = Pipeline<1, COLUMNS, 8>;
constexpr int THREADS = WARPGROUP + 32;  // a warpgroup multiplies, 64 sums per thread; one thread of a further warp loads

// The tiles of c by number. A cluster's `stacked` tiles, one below the other, share a number.
struct SmallTiles : Tiles<COLUMNS> {
    __host__ __device__ SmallTiles(int m, int n, int stacked = 1) : Tiles(m, n, stacked) {
        rows = ROWS * stacked;
        down = ceil_div(m, rows);
    }
};

// A tile of int32 in the registers of a block: loaded and stored 16 bytes a lane, summed and scanned.
#pragma once
#include <climits>
#include <cstdint>

#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"

constexpr int THREADS = 512, LANES = 32, WARPS = THREADS / LANES;
constexpr int ROWS = 4;                           // loads of 16 bytes per thread, all in flight together
constexpr int WARP_VALUES = ROWS * LANES * 4;     // a warp's part of the tile is contiguous
constexpr int TILE_VALUES = WARPS * WARP_VALUES;  // 8192: 32 KB

// Inclusive sum over the lanes of a warp.
__device__ inline int warp_scan(int sum) {
#pragma unroll
    for (int step = 1; step < LANES; step *= 2) {
        int below = __shfl_up_sync(~0u, sum, step);
        if (threadIdx.x % LANES >= step) sum += below;
    }
    return sum;
}

// The index in x of this thread's 4 values in row `r` of a tile.
__device__ inline int index_of(int tile, int r) {
    return tile * TILE_VALUES + threadIdx.x / LANES * WARP_VALUES + (r * LANES + threadIdx.x % LANES) * 4;
}

struct Tile {
    int4 row[ROWS];  // row r of the warp: lane l has values 4 l to 4 l + 3

    // Values from `n` on count as 0. x starts at a multiple of 16 bytes.
    __device__ void load(const int* __restrict__ x, int tile, int n) {
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int at = index_of(tile, r);
            if (at + 4 <= n) {
                row[r] = *reinterpret_cast<const int4*>(x + at);
            } else {
                row[r] = {at < n ? x[at] : 0, at + 1 < n ? x[at + 1] : 0, at + 2 < n ? x[at + 2] : 0, 0};
            }
        }
    }

    __device__ int sum() const {
        int total = 0;
#pragma unroll
        for (int r = 0; r < ROWS; r++) total += row[r].x + row[r].y + row[r].z + row[r].w;
        return total;
    }

    // Every value becomes the sum of the warp's values up to it; returns the sum of all of them.
    __device__ int scan_warp() {
        int before = 0;
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            row[r].y += row[r].x, row[r].z += row[r].y, row[r].w += row[r].z;
            const int up_to_lane = warp_scan(row[r].w);
            add_to_row(r, before + up_to_lane - row[r].w);
            before += __shfl_sync(~0u, up_to_lane, LANES - 1);
        }
        return before;
    }

    __device__ void add_to_row(int r, int value) { row[r].x += value, row[r].y += value, row[r].z += value, row[r].w += value; }

    // Stores every value plus `offset`; y is not read again, so its lines have the lowest priority in the L1.
    __device__ void store(int* __restrict__ y, int tile, int offset, int n) {
#pragma unroll
        for (int r = 0; r < ROWS; r++) {
            const int at = index_of(tile, r);
            add_to_row(r, offset);
            if (at + 4 <= n) {
                __stcs(reinterpret_cast<int4*>(y + at), row[r]);
            } else {
                if (at < n) y[at] = row[r].x;
                if (at + 1 < n) y[at + 1] = row[r].y;
                if (at + 2 < n) y[at + 2] = row[r].z;
            }
        }
    }
};

// The sum of `sum` over the warps below this one; `*total` becomes that of all. All threads of a block call it, with their warp's sum.
// It is one barrier. `sums` is shared memory, and may be used again behind another barrier.
__device__ inline int sum_of_warps_below(int (&sums)[WARPS], int sum, int* total) {
    if (threadIdx.x % LANES == 0) sums[threadIdx.x / LANES] = sum;
    __syncthreads();
    int below = 0;
    *total = 0;
#pragma unroll
    for (int warp = 0; warp < WARPS; warp++) {
        if (warp < threadIdx.x / LANES) below += sums[warp];
        *total += sums[warp];
    }
    return below;
}

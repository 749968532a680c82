// A tile of 64 x 64 floats, transposed through shared memory by 4-byte accesses. For the steps of transpose_vectorized.
#pragma once

constexpr int TILE = 64;              // floats per row of the tile: 256 bytes, 8 sectors, in x and in y
constexpr int THREADS = 256;          // threads per block, each with 16 loads of 4 bytes in flight
constexpr int STEP = THREADS / TILE;  // 4 rows per pass of the block

// The tile whose first element of x is that of row r0 and column c0.
__device__ void transpose_tile(const float* __restrict__ x, float* __restrict__ y, int rows, int cols, int r0, int c0) {
    __shared__ float tile[TILE][TILE + 1];  // an odd width: the 32 floats that a warp reads of a column lie in 32 banks
    const int lane = threadIdx.x % TILE, first = threadIdx.x / TILE;
    float in[TILE / STEP];
#pragma unroll
    for (int pass = 0; pass < TILE / STEP; pass++) {
        const int r = r0 + first + pass * STEP, c = c0 + lane;
        in[pass] = r < rows && c < cols ? x[size_t(r) * cols + c] : 0;
    }
#pragma unroll
    for (int pass = 0; pass < TILE / STEP; pass++) tile[first + pass * STEP][lane] = in[pass];
    __syncthreads();
#pragma unroll
    for (int pass = 0; pass < TILE / STEP; pass++) {
        const int r = r0 + lane, c = c0 + first + pass * STEP;
        // One store request of a warp: half of a row of the tile, 4 sectors.
        if (r < rows && c < cols) y[size_t(c) * rows + r] = tile[lane][first + pass * STEP];
    }
}

// Baseline: a warp reads along a row of x, so what it writes lies in 32 rows of y, a 32-byte sector for each 4-byte float.
#include "common/cuda/launch.cuh"

constexpr int TILE = 32;
constexpr int ROWS = 4;  // rows of the tile in a pass: 128 threads, 8 floats each

__global__ void transpose(const float* __restrict__ x, float* __restrict__ y, int rows, int cols) {
    int c = blockIdx.x * TILE + threadIdx.x;
#pragma unroll
    for (int pass = 0; pass < TILE; pass += ROWS) {
        int r = blockIdx.y * TILE + threadIdx.y + pass;
        // A warp's request: 32 floats of a row are 4 sectors to read, and 32 sectors to write.
        if (r < rows && c < cols) y[size_t(c) * rows + r] = x[size_t(r) * cols + c];
    }
}

LAUNCH(const float* x, float* y, int rows, int cols, cudaStream_t stream) {
    dim3 grid(ceil_div(cols, TILE), ceil_div(rows, TILE));
    transpose<<<grid, dim3(TILE, ROWS), 0, stream>>>(x, y, rows, cols);
    return cudaGetLastError();
}

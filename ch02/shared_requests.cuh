// What the sides of grace_coherent_memory share: the layer, for one request, and the two ways to give it the request's rows.
#pragma once
#include <cstdint>

#include "common/cuda/launch.cuh"

constexpr int TILE_ROWS = 16, TILE_COLS = 64, DEPTH = 64;
constexpr int THREADS = 256;  // each has four of the tile's results

// y = x w, for `rows` rows. A block has TILE_ROWS x TILE_COLS of y, so each row of x is read width / TILE_COLS times, by as many blocks.
__global__ void layer(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y, int rows, int width) {
    __shared__ float tile[TILE_ROWS][DEPTH];
    const int first = blockIdx.x * TILE_ROWS, col = blockIdx.y * TILE_COLS + threadIdx.x % TILE_COLS;
    const int quarter = threadIdx.x / TILE_COLS;
    float sums[TILE_ROWS / 4] = {};
    for (int k = 0; k < width; k += DEPTH) {
        __syncthreads();
        for (int i = threadIdx.x; i < TILE_ROWS * DEPTH; i += THREADS) {
            const int row = first + i / DEPTH;
            tile[i / DEPTH][i % DEPTH] = row < rows ? x[size_t(row) * width + k + i % DEPTH] : 0.0f;
        }
        __syncthreads();
#pragma unroll 16
        for (int d = 0; d < DEPTH; d++) {
            const float weight = w[size_t(k + d) * width + col];
            for (int r = 0; r < TILE_ROWS / 4; r++) sums[r] += tile[quarter + 4 * r][d] * weight;
        }
    }
    for (int r = 0; r < TILE_ROWS / 4; r++) {
        const int row = first + quarter + 4 * r;
        if (row < rows) y[size_t(row) * width + col] = sums[r];
    }
}

// A layer with device memory for one request, for which copies are made.
struct Layer {
    const float* w;
    int width;
    float *x, *y;

    // Of `rows` rows, in memory that the GPU can use: its own, or pinned memory of the host.
    cudaError_t in_place(const float* from, float* to, int rows, cudaStream_t stream) const {
        layer<<<dim3(ceil_div(rows, TILE_ROWS), width / TILE_COLS), THREADS, 0, stream>>>(from, w, to, rows, width);
        return cudaGetLastError();
    }

    // The rows are copied to the device, and the results back.
    cudaError_t by_copies(const float* from, float* to, int rows, cudaStream_t stream) const {
        const size_t bytes = sizeof(float) * rows * width;
        if (cudaError_t error = cudaMemcpyAsync(x, from, bytes, cudaMemcpyHostToDevice, stream)) return error;
        if (cudaError_t error = in_place(x, y, rows, stream)) return error;
        return cudaMemcpyAsync(to, y, bytes, cudaMemcpyDeviceToHost, stream);
    }

    cudaError_t make(int most_rows) {
        if (cudaError_t error = cudaMalloc(&x, sizeof(float) * most_rows * width)) return error;
        return cudaMalloc(&y, sizeof(float) * most_rows * width);
    }

    cudaError_t drop() const {
        if (cudaError_t error = cudaFree(x)) return error;
        return cudaFree(y);
    }
};

// Calls `compute(from, to, rows)` for each request, the small ones first. Returns the first error.
template <typename Compute>
cudaError_t for_each_request(const float* x, float* y, int small, int small_rows, int large, int large_rows, int width, Compute compute) {
    for (int request = 0; request < small + large; request++) {
        const int rows = request < small ? small_rows : large_rows;
        if (cudaError_t error = compute(x, y, rows)) return error;
        x += size_t(rows) * width, y += size_t(rows) * width;
    }
    return cudaSuccess;
}

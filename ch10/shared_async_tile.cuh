// A K-step's tiles by cp.async: a thread issues 12 copies of 16 bytes, which bypass registers on their way to shared memory.
#pragma once
#include <cuda_pipeline.h>

#include "shared_mma_tile.cuh"

// A thread's share of one of the PARTS of a tile of ROWS x TILE_K: a chunk of every 32nd row, swizzled. Beyond the last row it copies the
// last row again, because the rows of c made from it are never stored. Beyond the last column it writes zeros.
template <int ROWS>
__device__ void copy_rows(unsigned char* tile, const Element* first_row, int rows, int first_col, int cols, int part) {
    const int chunk = threadIdx.x % 8, col = first_col + chunk * 8;
    const Element* from = first_row + min(col, cols - 8);
#pragma unroll
    for (int i = 0; i < ROWS / PARTS; i += THREADS / 8) {
        const int row = part * (ROWS / PARTS) + i + threadIdx.x / 8;
        __pipeline_memcpy_async(tile + swizzled(row, chunk), from + size_t(min(row, rows - 1)) * cols, CHUNK, col < cols ? 0 : CHUNK);
    }
}

__device__ void copy_part(Stage& stage, const Product& x, int row, int column, int first, int part) {
    copy_rows<TILE_M>(stage.a, x.a + size_t(row) * x.k, x.m - row, first, x.k, part);
    copy_rows<TILE_N>(stage.b, x.b + size_t(column) * x.k, x.n - column, first, x.k, part);
}

__device__ void copy(Stage& stage, const Product& x, int row, int column, int first) {
#pragma unroll
    for (int part = 0; part < PARTS; part++) copy_part(stage, x, row, column, first, part);
}

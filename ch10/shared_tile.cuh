// The tiles of c = a b^T that both sides multiply: their size, their order, and how threads load the tiles of a and b.
#pragma once
#include <cuda_bf16.h>

#include "common/cuda/aligned.cuh"
#include "common/cuda/launch.cuh"
#include "common/cuda/operands.cuh"

using Element = __nv_bfloat16;

constexpr int TILE_M = 128;  // rows of c, and of a tile of a
constexpr int TILE_K = 64;   // a K-step: rows of 128 bytes
constexpr int BAND = 16;     // rows of tiles visited column by column, so blocks that run together share tiles of a and b in the L2

// a is m x k, b n x k, and c m x n.
struct Product {
    const Element *a, *b;
    Element* c;
    int m, n, k;

    // Threads access rows of all three matrices 16 bytes at a time.
    cudaError_t check() const {
        if (k % 8 || n % 8) return cudaErrorInvalidValue;
        return aligned(16, a, b, c) ? cudaSuccess : cudaErrorMisalignedAddress;
    }
};

// The tiles of c by number, TILE_N columns wide. A cluster's `stacked` tiles, one below the other, share a number.
template <int TILE_N>
struct Tiles {
    int down, across, rows, band;
    __host__ __device__ Tiles(int m, int n, int stacked = 1)
        : down(ceil_div(m, TILE_M * stacked)), across(ceil_div(n, TILE_N)), rows(TILE_M * stacked), band(BAND / stacked) {}
    __host__ __device__ int count() const { return down * across; }
    __device__ int row(int tile) const { return (tile / (band * across) * band + within(tile) % height(tile)) * rows; }
    __device__ int column(int tile) const { return within(tile) / height(tile) * TILE_N; }

  private:
    __device__ int within(int tile) const { return tile % (band * across); }
    __device__ int height(int tile) const { return min(band, down - tile / (band * across) * band); }
};

// A thread's share of a tile of ROWS x TILE_K: chunks of 16 bytes, loaded from a matrix and stored in the swizzled layout that tensor cores
// read. Eight lanes load a row of 128 bytes, and write it to all 32 banks. Outside the matrix the tile holds zeros. Product::check
// refuses matrices whose chunks are not aligned to 16 bytes.
template <int ROWS, int THREADS>
struct Share {
    uint4 chunk[ROWS * 8 / THREADS];

    __device__ void load(const Element* matrix, int first_row, int first_col, int rows, int cols) {
        const int row = first_row + threadIdx.x / 8, col = first_col + threadIdx.x % 8 * 8;
#pragma unroll
        for (int i = 0; i < ROWS * 8 / THREADS; i++) {
            const int at = row + i * (THREADS / 8);
            chunk[i] = at < rows && col < cols ? *reinterpret_cast<const uint4*>(matrix + size_t(at) * cols + col) : uint4{};
        }
    }
    __device__ void store(unsigned char* tile) const {
#pragma unroll
        for (int i = 0; i < ROWS * 8 / THREADS; i++) {
            *reinterpret_cast<uint4*>(tile + swizzled(threadIdx.x / 8 + i * (THREADS / 8), threadIdx.x % 8)) = chunk[i];
        }
    }
};

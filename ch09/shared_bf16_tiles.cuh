// Shared by both sides of tensor_core: how a block loads tiles of a and b into shared memory.
#pragma once
#include <cuda_bf16.h>

constexpr int TILE = 128;     // rows and columns of c per block
constexpr int DEPTH = 32;     // a K-step: tiles of a and b take 8 KB each, two groups of each per thread
constexpr int THREADS = 256;  // 8 warps
constexpr int GROUP = 8;      // bf16 in 16 bytes, the widest access of a thread
constexpr int PAD = GROUP;    // rows of 80 and 272 bytes: 16 bytes of each of 8 successive rows cover all 32 banks

struct Product {
    const __nv_bfloat16 *a, *b;
    float* c;
    int m, n, k;
};

struct Tiles {
    alignas(16) __nv_bfloat16 a[TILE][DEPTH + PAD], b[DEPTH][TILE + PAD];
};

struct Groups {
    uint4 a[2], b[2];
};

// Position of a thread's first groups in the tiles; the second groups are half a tile below. The L1 serves eight lanes at a time, one pass
// per cache line. Eight lanes load two rows of a, the fewest possible; rows 4 apart, because those lie in different banks of the tile.
struct Place {
    int a_row = threadIdx.x / 32 * 8 + threadIdx.x % 8 / 4 * 4 + threadIdx.x % 32 / 8, a_col = threadIdx.x % 4 * GROUP;
    int b_row = threadIdx.x / 16, b_col = threadIdx.x % 16 * GROUP;
};

// Eight bf16 at `from`, of which `valid` are inside the matrix. ALIGNED: `from` is a multiple of 16 bytes, and `valid` is 0 or 8.
template <bool ALIGNED>
__device__ uint4 load(const __nv_bfloat16* from, int valid) {
    if (ALIGNED) return valid > 0 ? *reinterpret_cast<const uint4*>(from) : uint4{};
    alignas(16) __nv_bfloat16 group[GROUP];
#pragma unroll
    for (int j = 0; j < GROUP; j++) group[j] = j < valid ? from[j] : __nv_bfloat16(0.0f);
    return *reinterpret_cast<uint4*>(group);
}

// A thread's part of the tiles that begin at column `first` of a and row `first` of b; zeros outside the matrices.
template <bool ALIGNED>
__device__ Groups fetch(const Product& x, int first) {
    Groups groups;
    const Place at;
    const int a_col = first + at.a_col, b_col = blockIdx.x * TILE + at.b_col;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        const int a_row = blockIdx.y * TILE + at.a_row + half * TILE / 2, b_row = first + at.b_row + half * DEPTH / 2;
        groups.a[half] = load<ALIGNED>(x.a + size_t(a_row) * x.k + a_col, a_row < x.m ? x.k - a_col : 0);
        groups.b[half] = load<ALIGNED>(x.b + size_t(b_row) * x.n + b_col, b_row < x.k ? x.n - b_col : 0);
    }
    return groups;
}

__device__ void put(Tiles& tiles, const Groups& groups) {
    const Place at;
#pragma unroll
    for (int half = 0; half < 2; half++) {
        *reinterpret_cast<uint4*>(&tiles.a[at.a_row + half * TILE / 2][at.a_col]) = groups.a[half];
        *reinterpret_cast<uint4*>(&tiles.b[at.b_row + half * DEPTH / 2][at.b_col]) = groups.b[half];
    }
}

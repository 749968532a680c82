// Stand-in for the TMA: copies of boxes, clipped, swizzled by bits of the address, each when the machine gets to it.
#pragma once
#include "common/cuda/mbarrier.cuh"
#include "cuda_bf16.h"

enum CUtensorMapSwizzle { CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_SWIZZLE_128B };

template <typename T>
struct Tiled {
    const T* matrix;
    int rows, cols;
    int tile_rows, tile_cols;
    CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
};
using CUtensorMap = Tiled<__nv_bfloat16>;

inline cudaError_t encode(CUtensorMap* map, const CUtensorMap& tiled) {
    const bool fits = tiled.tile_rows <= 256 && tiled.tile_cols <= 256 && tiled.tile_cols * 2 % 16 == 0;
    const bool aligned = reinterpret_cast<uintptr_t>(tiled.matrix) % 16 == 0 && tiled.cols * 2 % 16 == 0;
    const bool swizzles = tiled.swizzle == CU_TENSOR_MAP_SWIZZLE_NONE || tiled.tile_cols * 2 <= 128;
    *map = tiled;
    return fits && aligned && swizzles && tiled.rows > 0 && tiled.cols > 0 ? cudaSuccess : 1;
}

namespace on_cpu {
// Calls at(element of shared memory, row, column) for every element of a box; in the 128-byte swizzle bits 4 to 6 are XORed with 7 to 9.
template <typename At>
void each(const CUtensorMap& map, uint32_t address, At at) {
    for (int row = 0; row < map.tile_rows; row++) {
        for (int column = 0; column < map.tile_cols; column++) {
            uint32_t here = address + (row * map.tile_cols + column) * 2;
            if (map.swizzle == CU_TENSOR_MAP_SWIZZLE_128B) here ^= (here >> 7 & 7) << 4;
            at(reinterpret_cast<__nv_bfloat16*>(shared_pointer(here)), row, column);
        }
    }
}
inline int copies = 0;
inline std::string stores_of(int thread) { return "stores of " + std::to_string(thread); }
}  // namespace on_cpu

inline void load_tile_multicast(void* tile, const CUtensorMap* map, int column, int row, uint64_t* barrier, uint16_t blocks) {
    const uint32_t address = shared_address(tile);
    on_cpu::require(address % 1024 == 0, "a swizzled tile does not begin where the pattern does");
    on_cpu::require(blocks && blocks >> on_cpu::cluster.size() == 0, "a multicast to blocks that the cluster does not have");
    const std::string name = "load " + std::to_string(on_cpu::copies++);
    for (int rank = 0; rank < int(on_cpu::cluster.size()); rank++) {
        if (!(blocks >> rank & 1)) continue;
        const auto load = [map = *map, address, column, row, there = on_cpu::in_block(barrier, rank), from = on_cpu::block->rank, rank] {
            on_cpu::each(map, address, [&](__nv_bfloat16* element, int i, int j) {
                const bool inside = row + i < map.rows && column + j < map.cols;
                *element = inside ? map.matrix[size_t(row + i) * map.cols + column + j] : __nv_bfloat16{};
            });
            on_cpu::complete(there, map.tile_rows * map.tile_cols * 2, from != rank);
        };
        on_cpu::later(name, load, rank);
    }
}
inline void load_tile(void* tile, const CUtensorMap* map, int column, int row, uint64_t* barrier) {
    load_tile_multicast(tile, map, column, row, barrier, 1 << on_cpu::block->rank);
}
inline void store_tile(const CUtensorMap* map, int column, int row, const void* tile) {
    const uint32_t address = shared_address(tile);
    on_cpu::require(address % 1024 == 0, "a swizzled tile does not begin where the pattern does");
    on_cpu::later(on_cpu::stores_of(threadIdx.x), [map = *map, address, column, row] {
        on_cpu::each(map, address, [&](const __nv_bfloat16* element, int i, int j) {
            if (row + i >= map.rows || column + j >= map.cols) return;
            const_cast<__nv_bfloat16*>(map.matrix)[size_t(row + i) * map.cols + column + j] = *element;
        });
    });
}
#define wait_until_stores_have_read()       \
    if (!on_cpu::skips(__FILE__, __LINE__)) \
    on_cpu::wait([name = on_cpu::stores_of(threadIdx.x), &queues = on_cpu::block->queues] { return !queues.count(name); })
inline void show_to_async_proxy() {}

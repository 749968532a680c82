// Stand-in for tcgen05 in pairs: block 0 of a cluster of two starts products whose rows, columns and sums lie half in either block.
#pragma once
#include "common/cuda/cluster.cuh"
#include "common/cuda/tcgen05.cuh"
#include "common/cuda/tma.cuh"

inline void tensor_memory_take_pair(uint32_t* address, uint32_t columns) {
    on_cpu::require(on_cpu::cluster.size() == 2, "a pair is a cluster of two blocks");
    tensor_memory_take(address, columns);
}
inline void tensor_memory_give_back_pair(uint32_t address, uint32_t columns) { tensor_memory_give_back(address, columns); }

inline void tcgen05_multiply_pair(uint32_t sum, uint64_t a, uint64_t b, uint32_t instruction, bool add) {
    const int n = (instruction >> 17 & 0x3F) << 3, m = (instruction >> 24 & 0x1F) << 4;
    on_cpu::require(on_cpu::block->rank == 0, "block 1 of a pair starts a product");
    on_cpu::require(a >> 61 == 2 && b >> 61 == 2, "an operand of tcgen05 is not in the 128-byte swizzle");
    on_cpu::require((instruction & 0x1FFFF) == 0x490, "not dense, K-major, bf16 in and fp32 out");
    on_cpu::require(m == 256 && n % 32 == 0 && n <= 256, "a shape that is not modelled");
    for (int rank = 0; rank < 2; rank++) {
        on_cpu::require(on_cpu::tensor_memories[rank].has(sum, n), "sums outside the tensor memory that was taken");
    }
    on_cpu::later(on_cpu::TENSOR, [=] {
        static float rows[256][16], columns[256][16];
        for (int rank = 0; rank < 2; rank++) {
            on_cpu::enter_block(on_cpu::cluster[rank]);
            for (int i = 0; i < 128; i++) on_cpu::read_row(rows[rank * 128 + i], a, i);
            for (int j = 0; j < n / 2; j++) on_cpu::read_row(columns[rank * n / 2 + j], b, j);
        }
        on_cpu::enter_block(on_cpu::cluster[0]);
        for (int i = 0; i < m; i++) {
            for (int j = 0; j < n; j++) {
                float& one = on_cpu::tensor_memories[i / 128].lanes[i % 128][sum + j];
                one = (add ? one : 0) + on_cpu::dot(rows[i], columns[j]);
            }
        }
    });
}

// The arrivals are two, each when the machine gets to it.
inline void tcgen05_commit_pair(uint64_t* barrier) {
    uint64_t* const there[2] = {on_cpu::in_block(barrier, 0), on_cpu::in_block(barrier, 1)};
    on_cpu::later(on_cpu::TENSOR, [first = there[0], second = there[1]] {
        const std::string name = "commit " + std::to_string(on_cpu::commits++);
        on_cpu::later(name, [first] { on_cpu::arrive(first); }, 0);
        on_cpu::later(name, [second] { on_cpu::arrive(second, true); }, 1);
    });
}

inline void load_tile_for_pair(void* tile, const CUtensorMap* map, int column, int row, uint64_t* barrier) {
    const uint32_t address = shared_address(tile);
    on_cpu::require(address % 1024 == 0, "a swizzled tile does not begin where the pattern does");
    const auto load = [map = *map, address, column, row, there = on_cpu::in_block(barrier, 0), from = on_cpu::block->rank] {
        on_cpu::each(map, address, [&](__nv_bfloat16* element, int i, int j) {
            const bool inside = row + i < map.rows && column + j < map.cols;
            *element = inside ? map.matrix[size_t(row + i) * map.cols + column + j] : __nv_bfloat16{};
        });
        on_cpu::complete(there, map.tile_rows * map.tile_cols * 2, from != 0);
    };
    on_cpu::later("load " + std::to_string(on_cpu::copies++), load);
}

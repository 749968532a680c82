// Stand-in for tcgen05: products and commits wait in a queue, in order; tensor memory belongs to a block while it has allocated it.
#pragma once
#include "common/cuda/operands.cuh"
#include "common/cuda/tensor_cores.hpp"

namespace on_cpu {
constexpr uint32_t TENSOR_COLUMNS = 512;
struct TensorMemory {
    float lanes[128][TENSOR_COLUMNS];
    uint32_t first, allocated;  // columns: which was taken, and how many
    bool has(uint32_t column, uint32_t columns) const { return column >= first && column + columns <= first + allocated; }
};
inline TensorMemory tensor_memories[MOST_BLOCKS];
inline TensorMemory& tensor_memory() { return tensor_memories[block->rank]; }
inline int commits = 0;
constexpr const char* TENSOR = "tensor cores";
inline const bool tcgen05_ready = [] {
    begin_cluster = [] {
        barriers.clear();
        for (TensorMemory& each : tensor_memories) each.allocated = 0;
    };
    end_cluster = [] {
        for (TensorMemory& each : tensor_memories) {
            if (each.allocated) error = "a block ended with tensor memory";
        }
    };
    return true;
}();
}  // namespace on_cpu

// Every thread of the warp calls; the first does it. It gets the last columns there are, at address 0 only where it takes all: whoever
// takes the address for 0 is wrong.
inline void tensor_memory_take(uint32_t* address, uint32_t columns) {
    on_cpu::require(columns >= 32 && columns <= 512 && (columns & (columns - 1)) == 0, "columns are a power of two from 32 to 512");
    if (threadIdx.x % 32) return;
    on_cpu::require(on_cpu::tensor_memory().allocated == 0, "tensor memory was taken twice");
    on_cpu::tensor_memory().allocated = columns;
    *address = on_cpu::tensor_memory().first = on_cpu::TENSOR_COLUMNS - columns;
    for (auto& lane : on_cpu::tensor_memory().lanes) {
        for (float& value : lane) value = NAN;
    }
}
inline void tensor_memory_give_back(uint32_t address, uint32_t columns) {
    if (threadIdx.x % 32) return;
    on_cpu::TensorMemory& taken = on_cpu::tensor_memory();
    on_cpu::require(address == taken.first && columns == taken.allocated, "other tensor memory is given back than was taken");
    taken.allocated = 0;
}
inline void tcgen05_fence_before() {}
inline void tcgen05_fence_after() {}

inline void tcgen05_multiply(uint32_t sum, uint64_t a, uint64_t b, uint32_t instruction, bool add) {
    const int n = (instruction >> 17 & 0x3F) << 3, m = (instruction >> 24 & 0x1F) << 4;
    on_cpu::require(a >> 61 == 2 && b >> 61 == 2, "an operand of tcgen05 is not in the 128-byte swizzle");
    on_cpu::require((instruction & 0x1FFFF) == 0x490, "not dense, K-major, bf16 in and fp32 out");
    on_cpu::require(m == 128 && n >= 8 && n <= 256, "a shape that is not modelled");
    on_cpu::require(on_cpu::tensor_memory().has(sum, n), "sums outside the tensor memory that was taken");
    on_cpu::later(on_cpu::TENSOR, [=] {
        static float columns[256][16];
        for (int j = 0; j < n; j++) on_cpu::read_row(columns[j], b, j);
        for (int i = 0; i < m; i++) {
            float row[16];
            on_cpu::read_row(row, a, i);
            for (int j = 0; j < n; j++) {
                float& one = on_cpu::tensor_memory().lanes[i][sum + j];
                one = (add ? one : 0) + on_cpu::dot(row, columns[j]);
            }
        }
    });
}
inline void tcgen05_commit(uint64_t* barrier) {
    // It arrives when the products are complete, and nothing says which of two commits arrives first.
    on_cpu::later(on_cpu::TENSOR,
                  [barrier] { on_cpu::later("commit " + std::to_string(on_cpu::commits++), [barrier] { on_cpu::arrive(barrier); }); });
}
inline void tcgen05_load(uint32_t (&column)[64], uint32_t address) {
    const uint32_t lane = address >> 16, first = address & 0xFFFF;
    on_cpu::require(lane == threadIdx.x % 128 / 32 * 32u, "a warp reads lanes of tensor memory that it cannot reach");
    on_cpu::require(on_cpu::tensor_memory().has(first, 64), "columns outside the tensor memory that was taken");
    on_cpu::meet_warp();
    std::memcpy(column, &on_cpu::tensor_memory().lanes[lane + threadIdx.x % 32][first], sizeof column);
}
